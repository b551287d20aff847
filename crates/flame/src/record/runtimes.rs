//! Code that runtimes made: read when the recording is over, once Java VMs were asked for theirs.

use std::os::fd::OwnedFd;

use flame_doctor::recording::{of_answer, of_runtimes};
use flame_profile::Pid;
use flame_recorder::{JitTarget, LiveFiles, Recorder, Runtime, write_perf_maps};

use crate::message::{Note, this_command};
use crate::privileges;

/// What a process is started for that asks Java VMs.
pub(super) fn serve_java(asked: &[u8], flame: &OwnedFd) {
    flame_recorder::serve_java(asked, flame, privileges::become_user);
}

/// Has code read that runtimes made, once the Java VMs were asked for theirs if `ask_java`, and says
/// what is missing.
pub(super) fn read_processes(
    recorder: &mut Recorder,
    ask_java: bool,
    files: &LiveFiles,
) -> Vec<Note> {
    let is_java = |target: &JitTarget| {
        target.runtime == Some(Runtime::Java) && target.is_current && !target.is_read
    };
    let mut notes = Vec::new();
    if ask_java {
        let targets = recorder.jit_targets().into_iter().filter(is_java);
        let pids: Vec<Pid> = targets.map(|target| target.pid).collect();
        for (pid, answer) in pids.iter().zip(write_perf_maps(&pids, files)) {
            notes.extend(of_answer(*pid, &answer));
        }
    }
    recorder.read_processes();
    notes.extend(recorder.refused_code().into_iter().map(Note::plain));
    let ask = (!ask_java).then(|| this_command("record", "--java"));
    for hint in of_runtimes(&recorder.jit_targets(), ask.as_deref()) {
        if notes.iter().all(|note| note.mend() != hint.mend()) {
            notes.push(hint);
        }
    }
    notes
}
