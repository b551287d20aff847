//! All formats that are read: the first byte chooses one, or recognition; two threads read the same
//! as one.
#![no_main]

use flame_formats::{FORMATS, InputContent, ReadOptions, Source, read_input};
use flame_profile::{SiblingOrder, TreeOptions, ValueType};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((number, bytes)) = input.split_first() else { return };
    let format = FORMATS.get(usize::from(*number));
    let read = |threads| {
        let options = ReadOptions { format, threads, ..ReadOptions::default() };
        let source = Source::of_bytes(bytes.to_vec()).ok()?;
        let read = read_input(source, &options).ok()?;
        let InputContent::Stacks(stacks) = read.content else { return None };
        let tree = stacks.to_builder(&TreeOptions::default());
        let tree = tree.finish(ValueType::samples(), SiblingOrder::Name);
        if tree.total().0 < u64::MAX {
            assert_eq!(stacks.to_profile().total(0), tree.total());
        }
        Some((tree.total(), tree.nodes().len(), read.skipped.count()))
    };
    assert_eq!(read(1), read(2));
});
