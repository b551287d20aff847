//! Whether folded text lacks second counts: most of its lines seem to have two, as a comparison has, but not each.

use std::collections::HashSet;

use flame_profile::Columns;

use crate::names::is_decimal;

/// What is said of text with one count a line of whose start nearly all lines seem to have two; some do where
/// names end with a number.
pub(crate) fn lacking_counts(head: &[u8]) -> Option<String> {
    let lines = head.split(|byte| *byte == b'\n');
    let counts = lines.map(Columns::detect).filter(|columns| *columns == Columns::Two);
    let (two, all) = (counts.count(), memchr::memchr_iter(b'\n', head).count().max(1));
    (two * 8 >= all * 7 && !names_end_with_numbers(head)).then(|| {
        format!(
            "{two} of the first {all} lines have two counts, but not every line has: all were read with \
             one count, and the first as a part of names"
        )
    })
}

/// Whether names of a folded text end with numbers for sure, as counts do: those of callers do, or two lines have
/// the same stack without such numbers, of which a comparison has each once.
fn names_end_with_numbers(head: &[u8]) -> bool {
    let without_count = |text: &'_ [u8]| -> Option<usize> {
        let blank = text.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
        is_decimal(&text[blank + 1..]).then_some(blank)
    };
    let mut stacks: HashSet<&[u8]> = HashSet::new();
    head.split(|byte| *byte == b'\n').any(|line| {
        let line = line.trim_ascii_end();
        let mut callers = line.split(|byte| *byte == b';');
        let _innermost = callers.next_back();
        // The first frame may be a thread, which is called so in either case.
        let is_numbered = callers.skip(1).any(|frame| without_count(frame).is_some());
        let end = |end: usize| without_count(line[..end].trim_ascii_end());
        let stack = end(line.len()).and_then(end).map(|end| line[..end].trim_ascii_end());
        is_numbered || stack.is_some_and(|stack| !stacks.insert(stack))
    })
}

#[cfg(test)]
mod tests {
    use crate::source::Source;
    use crate::{ReadOptions, read_input};

    /// Whether a folded text is told to lack a second count, in which case it is an error if nothing may be left out.
    #[track_caller]
    fn check_lacks_counts(lines: impl Fn(usize) -> String, expect: bool) {
        let text = (0..40).map(|at| lines(at) + "\n").collect::<String>() + "main;init 3\n";
        let read = |strict| {
            let options = ReadOptions { strict, ..ReadOptions::default() };
            read_input(Source::of_bytes(text.clone().into_bytes()).unwrap(), &options)
        };
        assert_eq!((!read(false).unwrap().notes.is_empty(), read(true).is_err()), (expect, expect));
    }

    #[test]
    fn names_that_end_with_numbers_are_no_counts() {
        check_lacks_counts(|at| format!("main;f{at} {at} 7"), true);
        check_lacks_counts(|at| format!("worker {at};f{at} {at} 7"), true);
        check_lacks_counts(|at| format!("main;shard {at};query {at} 7"), false);
        check_lacks_counts(|at| format!("main;worker {at} 7"), false);
    }
}
