//! What a runtime must be told for its code to have names and whole stacks.

use flame_doctor::advice;
use flame_doctor::rights::is_root;
use flame_profile::Pid;
use flame_recorder::{JitTarget, LiveFiles, Recorder, Runtime};

use crate::java::{self, JavaError};
use crate::message::{Note, this_command};

/// How a VM that ends by itself is made to write down its methods.
const DUMP_AT_EXIT: &str =
    "start it with -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (Java 17 or later)";

/// What keeps the stacks of compiled Java code whole.
const FRAME_POINTERS: &str = "start Java with -XX:+PreserveFramePointer";

/// Runtimes other than Java, which is asked for its names.
const OTHERS: [Runtime; 5] =
    [Runtime::Node, Runtime::Php, Runtime::LuaJit, Runtime::Ruby, Runtime::DotNet];

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
        for (pid, answer) in pids.iter().zip(java::write_perf_maps(&pids, files)) {
            notes.extend(of_answer(*pid, &answer));
        }
    }
    recorder.read_processes();
    notes.extend(recorder.refused_code().into_iter().map(Note::plain));
    for hint in hints(&recorder.jit_targets(), ask_java) {
        if notes.iter().all(|note| note.mend() != hint.mend()) {
            notes.push(hint);
        }
    }
    notes
}

/// What a VM's answer means for the profile.
fn of_answer(pid: Pid, answer: &Result<java::Answer, JavaError>) -> Option<Note> {
    let error = match answer {
        Ok(java::Answer { has_frame_pointers: true }) => return None,
        Ok(java::Answer { has_frame_pointers: false }) => {
            let text = format!(
                "Java process {pid} keeps no frame pointers: compiled methods are missing in its stacks"
            );
            return Some(Note::new(text, FRAME_POINTERS));
        }
        Err(error) => error,
    };
    let mend = match error {
        JavaError::Ended | JavaError::TooOld => DUMP_AT_EXIT,
        JavaError::Deaf => "start it without that option",
        JavaError::NoAnswer => "the same when it is less busy",
        JavaError::Io(_) | JavaError::HungUp if is_root() => "the same when it runs undisturbed",
        JavaError::Io(_) | JavaError::HungUp => "flame as root, or as the user of the process",
        JavaError::Refused(_) => "jcmd PID Compiler.perfmap, to see what the VM says",
    };
    Some(Note::new(format!("Java process {pid} did not name its methods: {error}"), mend))
}

/// What could be better, one note for each runtime.
fn hints(targets: &[JitTarget], asked_java: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    let targets = targets.iter().filter(|target| !target.is_read);
    let of = |runtime| targets.clone().filter(move |target| target.runtime == Some(runtime));
    if let Some(target) = of(Runtime::Java).find(|target| target.unnamed > 0)
        && !asked_java
    {
        let mend = format!("{} (or {DUMP_AT_EXIT})", this_command("record", "--java"));
        let text = format!("compiled methods of Java process {} have no names", target.pid);
        notes.push(Note::new(text, mend));
    }
    let cut: u64 = of(Runtime::Java).map(|target| target.cut).sum();
    if cut > 0 {
        let text = format!("{cut} stacks end in compiled Java code, which keeps no frame pointers");
        notes.push(Note::new(text, FRAME_POINTERS));
    }
    for runtime in OTHERS {
        let advice = advice(runtime);
        let unnamed = of(runtime).find(|target| target.unnamed > 0);
        if let (Some(target), Some(mend)) = (unnamed, advice.names) {
            let text = format!("{} in process {} have no names", advice.code, target.pid);
            notes.push(Note::new(text, mend));
        }
        let cut: u64 = of(runtime).map(|target| target.cut).sum();
        if let (1.., Some((lack, mend))) = (cut, advice.stacks) {
            let text = format!("{cut} stacks end in {}, which have {lack}", advice.code);
            notes.push(Note::new(text, mend));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(runtime: Runtime, unnamed: usize, cut: u64) -> JitTarget {
        JitTarget {
            pid: Pid(4242),
            runtime: Some(runtime),
            cut,
            unnamed,
            is_current: true,
            is_read: false,
        }
    }

    #[track_caller]
    fn check(targets: &[JitTarget], asked_java: bool, expect: &[&str]) {
        let notes = hints(targets, asked_java);
        let texts: Vec<&str> = notes.iter().map(Note::text).collect();
        assert_eq!(texts, expect);
    }

    #[test]
    fn what_is_missing_is_said_once_for_each_runtime() {
        let java = "compiled methods of Java process 4242 have no names";
        let cut = "12 stacks end in compiled Java code, which keeps no frame pointers";
        let node = "JavaScript functions in process 4242 have no names";
        let php = "functions that PHP compiled in process 4242 have no names";
        let php_cut = "7 stacks end in functions that PHP compiled, which have neither frame \
                       pointers nor unwind tables";
        let lua = "3 stacks end in traces of LuaJIT, which have neither frame pointers nor unwind \
                   tables";
        check(&[target(Runtime::Java, 0, 0), target(Runtime::Node, 0, 9)], false, &[]);
        check(&[target(Runtime::Java, 3, 0), target(Runtime::Java, 2, 0)], false, &[java]);
        check(&[target(Runtime::Java, 3, 5), target(Runtime::Java, 0, 7)], true, &[cut]);
        let read = JitTarget { is_read: true, ..target(Runtime::Java, 3, 5) };
        check(&[read], false, &[]);
        check(&[target(Runtime::Node, 1, 0)], false, &[node]);
        check(&[target(Runtime::Php, 2, 7)], false, &[php, php_cut]);
        check(&[target(Runtime::LuaJit, 2, 1), target(Runtime::LuaJit, 1, 2)], false, &[lua]);
        check(&[target(Runtime::Ruby, 0, 0), target(Runtime::DotNet, 0, 5)], false, &[]);
    }
}
