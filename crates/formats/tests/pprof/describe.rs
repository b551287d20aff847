//! A profile as lines of text, so that profiles can be compared and differences read.

use flame_profile::{FrameId, Profile};

/// Everything in a profile that has a meaning, one fact a line; ids are left out.
pub(crate) fn describe(profile: &Profile) -> Vec<String> {
    let mut lines = vec![
        format!("{:?}", profile.meta),
        format!("{:?}", profile.health),
        format!("default {} of {:?}", profile.default_value, profile.value_types()),
    ];
    lines.extend(profile.images().iter().map(|image| format!("{image:?}")));
    let frame = |id: &FrameId| {
        let frame = profile.frame(*id);
        let file = frame.file.map(|file| profile.text(file));
        format!("{}|{:?}|{file:?}|{:?}", profile.text(frame.name), frame.kind, frame.line)
    };
    for location in profile.locations() {
        let frames: Vec<String> = location.frames.iter().map(frame).collect();
        let image = location.image.map(|image| image.index());
        lines.push(format!("{image:?}+{:?} {frames:?}", location.address));
    }
    for sample in profile.samples() {
        let thread = profile.thread(sample.thread);
        let name = profile.text(thread.name);
        let process = thread.process.map(|process| profile.text(process));
        let (pid, tid) = (thread.pid, thread.tid);
        let stack = profile.stacks().entries(sample.stack);
        let stack: Vec<usize> = stack.map(|location| location.index()).collect();
        let values = sample.values;
        lines.push(format!("{name:?} {process:?} {pid:?} {tid:?} {stack:?} {values:?}"));
    }
    lines
}
