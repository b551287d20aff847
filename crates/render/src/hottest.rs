//! The table at the end of a recording: where the samples are.

use std::collections::BTreeMap;

use flame_message::{Paint, shortened};
use flame_profile::{CallTree, FrameKind, FunctionShare, LabelId, Node, Weight, functions};

use crate::whole::position;

/// Functions that are listed.
const TOP: usize = 10;

/// Columns of the bar beside a function.
const BAR: usize = 10;

/// The functions with the most weight, for a terminal of that many columns; empty where there is none.
pub(crate) fn hottest(tree: &CallTree, paint: Paint, columns: usize) -> String {
    let total = tree.total();
    let heading = heading_of_calls(&tree.value_type().name);
    let mut top: Vec<(String, Weight)> = match heading {
        Some(_) if !tree.is_turned() => calls_of_the_program(tree),
        _ => {
            let of =
                |share: &FunctionShare| (name(tree, share.label).to_owned(), share.self_weight);
            functions(tree).iter().map(of).collect()
        }
    };
    top.retain(|(_, weight)| *weight > Weight(0));
    top.truncate(TOP);
    let Some(most) = top.first().map(|(_, weight)| *weight) else { return String::new() };
    let heading = heading.unwrap_or("   self   function");
    let mut text = format!("\n  {}\n", paint.dim(heading));
    let room = columns.saturating_sub(BAR + 14);
    for (function, weight) in top {
        let percentage = format!("{:.1} %", weight.share_of(total) * 100.0);
        let bar = paint.orange(&bar(weight.share_of(most)));
        text += &format!("  {percentage:>8} {bar} {}\n", shortened(&function, room));
    }
    text + "\n"
}

/// The heading where every sample is in the same few functions, whatever the program did: all waits are in
/// the scheduler, all allocations in malloc. What counts is from where the program called these.
fn heading_of_calls(value: &str) -> Option<&'static str> {
    match value {
        "off-cpu" => Some("   time   waits in"),
        "wakeup" => Some("   time   woken in"),
        "offwake" => Some("   time   ended in"),
        "wall" => Some("   time   runs or waits in"),
        "locks" => Some("  share   waits in"),
        "alloc" | "live" | "io" | "block-io" | "syscalls" | "mmap" | "brk" => {
            Some("  share   function")
        }
        "context-switches" | "context_switches" => Some("  share   function"),
        // Tracepoints and functions: GROUP:NAME, uprobe:FILE:FUNCTION.
        event if event.contains(':') => Some("  share   function"),
        _ => None,
    }
}

/// Whether a frame is the program's, or all that there is instead: a mark right on a thread.
fn is_of_the_program(tree: &CallTree, node: &Node) -> bool {
    match tree.label(node).kind {
        FrameKind::Kernel | FrameKind::Waiting => false,
        FrameKind::Mark => tree.label(parent(tree, node)).kind == FrameKind::Mark,
        _ => true,
    }
}

fn parent<'t>(tree: &'t CallTree, node: &Node) -> &'t Node {
    &tree.nodes()[node.parent.index()]
}

/// Where the program went into the kernel, with what was spent there, heaviest first: its innermost
/// function or, where that is a library's, its own function with what it called of the library,
/// `load → read`. All programs are in `read` when they read.
fn calls_of_the_program(tree: &CallTree) -> Vec<(String, Weight)> {
    let mut weights: BTreeMap<(LabelId, Option<LabelId>), Weight> = BTreeMap::new();
    // Calls of a function of the program's own: uprobe:FILE:FUNCTION.
    let event = tree.value_type().name.strip_prefix("uprobe:");
    let sampled = event.and_then(|event| Some(event.rsplit_once(':')?.1));
    for node in tree.nodes().iter().skip(1).filter(|node| node.self_weight > Weight(0)) {
        let mut at = node;
        while at.depth > 1 && !is_of_the_program(tree, at) {
            at = parent(tree, at);
        }
        let call = called(tree, at, sampled).unwrap_or((at.label, None));
        weights.entry(call).or_default().0 += node.self_weight.0;
    }
    let mut all: Vec<_> = weights.into_iter().collect();
    all.sort_by_key(|(call, weight)| (std::cmp::Reverse(*weight), *call));
    let text = |((function, called), weight): ((LabelId, Option<LabelId>), Weight)| {
        let called = called.map(|called| format!(" → {}", name(tree, called))).unwrap_or_default();
        (format!("{}{called}", name(tree, function)), weight)
    };
    all.into_iter().map(text).collect()
}

/// The function of the program that called a library, or the function whose calls are sampled, and
/// what it called of that.
fn called(
    tree: &CallTree,
    innermost: &Node,
    sampled: Option<&str>,
) -> Option<(LabelId, Option<LabelId>)> {
    let (mut at, mut called, mut inlined) = (innermost, None, None);
    loop {
        let label = tree.label(at);
        let is_sampled = called.is_none() && sampled == Some(label.name.as_str());
        match label.kind {
            FrameKind::Mark | FrameKind::Kernel => return None,
            _ if is_sampled => (called, inlined) = (Some(at.label), None),
            FrameKind::Library => (called, inlined) = (Some(at.label), None),
            // Of the library or of the program: what it is inlined into comes next.
            FrameKind::Inlined => inlined = inlined.or(Some(at.label)),
            FrameKind::User | FrameKind::Jit => {
                let own = inlined.unwrap_or(at.label);
                return match script_of(tree, at) {
                    Some(script) => Some((script, Some(called.unwrap_or(own)))),
                    None => called.map(|called| (own, Some(called))),
                };
            }
            FrameKind::Script => return called.map(|called| (at.label, Some(called))),
            _ => return None,
        }
        at = parent(tree, at);
    }
}

/// The function of a script for which an interpreter's own function runs.
fn script_of<'t>(tree: &'t CallTree, mut at: &'t Node) -> Option<LabelId> {
    while at.depth > 1 && tree.label(at).kind != FrameKind::Script {
        at = parent(tree, at);
    }
    (tree.label(at).kind == FrameKind::Script).then_some(at.label)
}

fn name(tree: &CallTree, label: LabelId) -> &str {
    &tree.labels()[label.index()].name
}

/// A bar of eighths of a column, padded to its full width.
fn bar(share: f64) -> String {
    let eighths = position((share * (BAR * 8) as f64).round());
    let mut text = "█".repeat(eighths / 8);
    text.extend([' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8).filter(|c| **c != ' '));
    let width = text.chars().count();
    text + &" ".repeat(BAR.saturating_sub(width))
}

#[cfg(test)]
mod tests {
    use flame_profile::{Location, Pid, Profile, StackId, Tid, TreeOptions, ValueType};

    use super::*;

    #[test]
    fn bars_have_a_fixed_width_and_eighths() {
        assert_eq!(bar(1.0), "█".repeat(10));
        assert_eq!(bar(0.05), format!("▌{}", " ".repeat(9)));
        assert_eq!(bar(0.0), " ".repeat(10));
    }

    /// A tree of stacks, each with the kinds of its frames, from the outermost on.
    fn tree(event: &str, stacks: &[(&[(&str, FrameKind)], u64)]) -> CallTree {
        let mut profile = Profile::new(vec![ValueType::new(event, "count")]);
        let thread = profile.add_thread("server", Pid(1), Tid(1));
        for (frames, weight) in stacks {
            let mut stack = StackId::EMPTY;
            for (name, kind) in *frames {
                let frame = profile.add_frame(name, *kind);
                let location = profile.add_location(Location::named(frame));
                stack = profile.push_stack(stack, location);
            }
            profile.add_sample(thread, stack, &[*weight]);
        }
        CallTree::from_profile(&profile, &TreeOptions::default())
    }

    #[test]
    fn what_the_kernel_did_is_told_by_the_programs_own_function_and_what_it_called() {
        use FrameKind::{Inlined, Kernel, Library, User};
        let main = ("main", User);
        let (read, cancel, schedule) =
            (("read", Library), ("__libc_read", Inlined), ("schedule", Kernel));
        let stacks: [(&[_], u64); 5] = [
            (&[main, ("ping", User), read, cancel, schedule], 5),
            (&[main, ("pong", User), ("inlined", Inlined), read, schedule], 4),
            (&[main, ("own", User), ("inlined", Inlined), schedule], 3),
            (&[("start", Library), read, schedule], 2),
            (&[schedule], 1),
        ];
        let found = calls_of_the_program(&tree("context-switches", &stacks));
        let expect =
            [("ping → read", 5), ("inlined → read", 4), ("inlined", 3), ("read", 2), ("server", 1)];
        assert_eq!(found, expect.map(|(text, weight)| (text.to_owned(), Weight(weight))));
    }

    /// Not by those of its interpreter, which are the same for all.
    #[test]
    fn what_the_kernel_did_for_a_script_is_told_by_its_function() {
        use FrameKind::{Kernel, Library, Script, User};
        let (main, order, eval) = (("main", User), ("order", Script), ("eval", User));
        let (read, schedule) = (("read", Library), ("schedule", Kernel));
        let stacks: [(&[_], u64); 4] = [
            (&[main, order, eval, read, schedule], 4),
            (&[main, order, eval, schedule], 3),
            (&[main, order, read, schedule], 2),
            (&[main, eval, read], 1),
        ];
        let found = calls_of_the_program(&tree("syscalls", &stacks));
        let expect = [("order → read", 6), ("order → eval", 3), ("eval → read", 1)];
        assert_eq!(found, expect.map(|(text, weight)| (text.to_owned(), Weight(weight))));
    }

    /// A table in which malloc has all of the weight says nothing.
    #[test]
    fn calls_of_a_function_are_told_by_who_calls_it() {
        use FrameKind::{Library, User};
        let (main, load, flush) = (("main", User), ("load", User), ("flush", User));
        let stacks: [(&[_], u64); 3] = [
            (&[main, load, ("malloc", Library)], 4),
            (&[main, load, flush, flush], 3),
            (&[main, flush], 2),
        ];
        let check = |event: &str, expect: &[&str]| {
            let text = hottest(&tree(event, &stacks), Paint(false), 80);
            let found: Vec<&str> = text.lines().filter(|line| line.contains('%')).collect();
            assert_eq!(found.len(), expect.len(), "{event}: {text}");
            for (line, expect) in found.iter().zip(expect) {
                assert!(line.ends_with(*expect), "{event}: {text}");
            }
        };
        check("alloc", &[" flush", "load → malloc"]);
        check("uprobe:/bin/x:flush", &["load → malloc", "flush → flush", "main → flush"]);
        check("cpu", &[" flush", " malloc"]);
    }
}
