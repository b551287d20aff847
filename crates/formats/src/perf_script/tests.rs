//! Texts as perf prints them, with all that `-F` lets it choose, and with lines of something else.

use flame_profile::{Annotations, SiblingOrder, TreeOptions, ValueType, write_folded};

use crate::skipped::Place;
use crate::{InputContent, ReadInput, ReadOptions, Source, read_input};

/// Reads a text that is to be recognised.
#[track_caller]
fn read(text: &str, threads: usize) -> ReadInput {
    let source = Source::of_bytes(text.as_bytes().to_vec()).unwrap();
    let options = ReadOptions { threads, ..ReadOptions::default() };
    let read = read_input(source, &options).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    assert_eq!(read.format.name, "perf-script", "{text}");
    read
}

fn folded(read: &ReadInput) -> String {
    let InputContent::Stacks(stacks) = &read.content else { panic!("stacks are expected") };
    let builder = stacks.to_builder(&TreeOptions::default());
    let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
    let mut text = Vec::new();
    write_folded(&tree, Annotations::Write, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn skipped_lines_have_their_numbers_however_many_threads_read() {
    let sample = "prog 7 1.000001:   1 cpu-clock: \n\t            7f00 main+0x1 (/bin/prog)\n\n";
    let count = 20_000_u64;
    let text = format!("{}nonsense\n{sample}nonsense\n", sample.repeat(count as usize));
    for threads in [1, 2] {
        let input = read(&text, threads);
        let places: Vec<Place> = input.skipped.first().iter().map(|part| part.place).collect();
        let expect = [3 * count + 1, 3 * count + 5].map(Place::Line);
        assert_eq!(places, expect, "{threads} threads");
    }
}

#[test]
fn a_line_that_is_too_long_costs_itself_alone() {
    let sample = "x 7 1.0:   1 cycles: \n\t            7f00 f+0x1 (/bin/x)\n";
    let long = "y".repeat(40 << 20);
    for start in ["", "\t            7f00 ", "x 7 1.0: "] {
        let text = format!(
            "{sample}{start}{long}\n\t            7f10 main (/bin/x)\n\n{sample}\ngarbage\n"
        );
        for threads in [1, 2] {
            let input = read(&text, threads);
            assert_eq!(folded(&input), "x;f 1\nx;main;f 1\n");
            let places: Vec<Place> = input.skipped.first().iter().map(|part| part.place).collect();
            assert_eq!(places, [3, 9].map(Place::Line), "{threads} threads");
        }
    }
}

#[test]
fn warnings_of_perf_may_stand_before_the_first_sample_of_any_fields() {
    let warning = "WARNING: Kernel address maps are restricted\n";
    let text = format!("{warning}{warning}x  4544 \n\t            7f00 f\n\n");
    let input = read(&text, 1);
    assert_eq!((folded(&input).as_str(), input.skipped.count()), ("x;f 1\n", 2));
}

/// What is too long for the name of a thread is none: here an address stands behind the event.
#[test]
fn lines_with_more_fields_are_no_names() {
    let sample = "x  4544 cpu-clock:                0 \n\t            7f00 f\n\n";
    let text = format!("{sample}{}", sample.replace("cpu-clock", "cycles"));
    let input = read(&text, 1);
    assert_eq!((folded(&input).as_str(), input.notes.len()), ("x;f 1\n", 1), "{:?}", input.notes);
}

/// perf prints no empty line behind an instruction.
#[test]
fn a_sample_ends_with_its_instruction() {
    let text = "x  4544 \n\t            7f00 f\n\t            7f10 main\n insn: 0f 84\n\
                x  4544 \n\t            7f00 f\n\n\
                y  4545 \n\t            7f00 f\n insn: 48\n";
    assert_eq!(folded(&read(text, 1)), "x;f 1\nx;main;f 1\ny;f 1\n");
}

/// A choice of `-F`, and whether call chains were recorded.
#[derive(Clone, Copy, Debug)]
struct Choice {
    comm: bool,
    /// Without, in 5 columns, in 7, and the process with it.
    ids: u8,
    cpu: bool,
    misc: bool,
    time: bool,
    period: bool,
    event: bool,
    has_stacks: bool,
}

const NAMES: [&str; 8] =
    ["server", "dd", "my prog", "1234", "redis 7", "a  b 1001", "kworker/0:1-eve", "Web Content "];
const CHOICES: u16 = 2 * 4 * 64;

impl Choice {
    fn numbered(number: u16) -> Choice {
        let is = |bit: u16| number >> bit & 1 == 1;
        let ids = (number >> 7) as u8;
        let [comm, cpu, misc, time, period, event, has_stacks] = [0, 1, 2, 3, 4, 5, 6].map(is);
        Choice { comm, ids, cpu, misc, time, period, event, has_stacks }
    }

    /// What perf prints of a sample.
    fn print(self, number: usize) -> String {
        let name = NAMES[number % NAMES.len()];
        let tid = 8 + 997 * number;
        let mut line = String::new();
        match (self.comm, self.has_stacks) {
            (true, true) => line += &format!("{name} "),
            (true, false) => line += &format!("{name:>16} "),
            _ => {}
        }
        line += &match self.ids {
            1 => format!("{tid:5} "),
            2 => format!("{tid:7} "),
            3 => format!("{:5}/{tid:<5} ", 7),
            _ => String::new(),
        };
        let cpu = number % 3;
        line += &if self.cpu { format!("[{cpu:03}] ") } else { String::new() };
        line += if self.misc { ["U     ", "K     ", "Up    "][cpu] } else { "" };
        line += &if self.time { format!("{:5}.{number:06}: ", 90 + number) } else { String::new() };
        line += &if self.period { format!("{:10} ", period(number)) } else { String::new() };
        line += if self.event { "cycles:u: " } else { "" };
        // A symbol may be blank.
        let symbol = if number % 5 == 4 { String::new() } else { format!("f{}+0x1f", number % 5) };
        let leaf = format!("{:16x} {symbol} (/bin/x)\n", address(number));
        if self.has_stacks {
            format!("{line}\n\t{leaf}\t{:16x} main (/bin/x)\n\n", address(number) + 99)
        } else {
            format!("{line} {leaf}")
        }
    }

    /// What a sample is, folded.
    fn fold(self, number: usize) -> (String, u64) {
        let name = NAMES[number % NAMES.len()].trim_end().replace(' ', "_");
        let root = if self.comm { format!("{name};") } else { String::new() };
        let main = if self.has_stacks { "main;" } else { "" };
        let weight = if self.period { period(number) } else { 1 };
        let leaf = if number % 5 == 4 { "[x]".to_owned() } else { format!("f{}", number % 5) };
        (format!("{root}{main}{leaf}"), weight)
    }
}

fn period(number: usize) -> u64 {
    [1, 1_001_001, 4_000_000_000, 123_456_789_012, 8_008][number % 5]
}

fn address(number: usize) -> u64 {
    [0x55d2_0000_1139, 0xffff_ffff_8104_f45a, 0x401_136, 0x7f12_3456_7890][number % 4]
}

/// The folded text of so many samples.
fn expected(choice: Choice, samples: usize) -> String {
    let mut sums = std::collections::BTreeMap::new();
    for (stack, weight) in (0..samples).map(|number| choice.fold(number)) {
        *sums.entry(stack).or_insert(0) += weight;
    }
    sums.iter().map(|(stack, weight)| format!("{stack} {weight}\n")).collect()
}

#[test]
fn samples_are_read_whatever_fields_were_chosen() {
    const SAMPLES: usize = 70;
    for choice in (0..CHOICES).map(Choice::numbered) {
        let text: String = (0..SAMPLES).map(|number| choice.print(number)).collect();
        let read = read(&text, 1);
        assert_eq!(folded(&read), expected(choice, SAMPLES), "{choice:?}:\n{text}");
        assert_eq!(read.skipped.count(), 0, "{choice:?}:\n{text}");
    }
}

#[test]
fn lines_of_something_else_are_counted_wherever_they_stand() {
    const SAMPLES: usize = 40;
    const FOREIGN: [&str; 8] = [
        "garbage 7",
        "bad idea",
        "main;parse;read 12",
        "error: line 12 of:",
        "\tadd 7",
        "[  12.345678] usb 1-1: new device number 7",
        "a.c:12",
        "deadbeef",
    ];
    for choice in (0..CHOICES).map(Choice::numbered) {
        let mut random = fastrand::Rng::with_seed(7);
        let mut text = String::new();
        let (mut count, mut number) = (0, 0);
        let mut places = Vec::new();
        let samples = (0..SAMPLES).map(|at| choice.print(at)).collect::<String>();
        for line in samples.lines() {
            // A name or a stack alone is known by the first of them, and what stands between it and its frames
            // by nothing.
            let may_follow = !line.starts_with('\t') || line.contains("main");
            if number > 3 && may_follow && random.u8(0..4) == 0 {
                text += random.choice(FOREIGN).unwrap();
                text.push('\n');
                count += 1;
                number += 1;
                places.push(Place::Line(number));
            }
            number += 1;
            text += line;
            text.push('\n');
        }
        let read = read(&text, 1);
        assert_eq!(folded(&read), expected(choice, SAMPLES), "{choice:?}:\n{text}");
        let first: Vec<Place> = read.skipped.first().iter().map(|part| part.place).collect();
        assert_eq!(first, places[..5], "{choice:?}:\n{text}");
        assert_eq!(read.skipped.count(), count, "{choice:?}:\n{text}");
    }
}

#[test]
fn lines_before_the_first_sample_and_in_what_is_left_out_are_counted() {
    let frame = "\t            7f00 main+0x1 (/bin/x)\n\n";
    let text = format!(
        "garbage 7\nmain;parse 12\nx 7 1.0: 5 cycles: \n{frame}x 7 2.0: 1 faults: \n\
         main;read 3\n{frame}x 7 3.0: PERF_RECORD_COMM: x:7/7\nmain;read 4\n\
         x 7 4.0: 3 cycles: \n{frame}"
    );
    let input = read(&text, 1);
    assert_eq!(folded(&input), "x;main 8\n");
    let places: Vec<Place> = input.skipped.first().iter().map(|part| part.place).collect();
    assert_eq!(places, [1, 2, 7, 11].map(Place::Line));
}

#[test]
fn lines_without_frames_are_refused_with_the_fields_that_they_lack() {
    for fields in ["          server   840 \n", "  840 \n", "   1001001 \n"] {
        let source = Source::of_bytes(fields.repeat(3).into_bytes()).unwrap();
        let error = read_input(source, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.ends_with("add ip,sym to its -F"), "{error}");
    }
}

#[test]
fn periods_that_few_samples_have_are_said() {
    let sample =
        |period: &str| format!("x 7 1.0: {period} cycles: \n\t            7f00 f (/x)\n\n");
    let text = sample("").repeat(3) + &sample("500");
    for threads in [1, 2] {
        let input = read(&text, threads);
        assert_eq!((&*folded(&input), input.skipped.count()), ("x;f 4\n", 0));
        let said = "samples that have a period: 1; all count as 1, as most have none";
        assert_eq!(input.notes, [said]);
        let options = ReadOptions { strict: true, threads, ..ReadOptions::default() };
        let source = Source::of_bytes(text.clone().into_bytes()).unwrap();
        let refused = read_input(source, &options).unwrap_err().to_string();
        assert!(refused.contains("line 10"), "{refused}");
    }
}
