//! What a runtime must be told for its code to have names and whole stacks.

use flame_message::{Note, reason};
use flame_profile::Pid;
use flame_recorder::{JAVA_PATIENCE, JavaAnswer, JavaError, JitTarget, Runtime};

use crate::rights::is_root;
use crate::runtime_advice::advice;

/// How a VM that ends by itself is made to write down its methods.
const DUMP_AT_EXIT: &str =
    "start it with -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (Java 17 or later)";

/// What keeps the stacks of compiled Java code whole.
const FRAME_POINTERS: &str = "start Java with -XX:+PreserveFramePointer";

/// Runtimes other than Java, which is asked for its names.
const OTHERS: [Runtime; 5] =
    [Runtime::Node, Runtime::Php, Runtime::LuaJit, Runtime::Ruby, Runtime::DotNet];

/// What a VM's answer means for the profile.
pub fn of_answer(pid: Pid, answer: &Result<JavaAnswer, JavaError>) -> Option<Note> {
    let error = match answer {
        Ok(JavaAnswer { has_frame_pointers: true }) => return None,
        Ok(JavaAnswer { has_frame_pointers: false }) => {
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
    let why = match error {
        JavaError::Ended => "it has ended".to_owned(),
        JavaError::Deaf => "it runs with -XX:+DisableAttachMechanism or -Xrs".to_owned(),
        JavaError::NoAnswer => format!("it did not answer within {} s", JAVA_PATIENCE.as_secs()),
        JavaError::HungUp => "it does not answer this user".to_owned(),
        JavaError::TooOld => "it is older than Java 17".to_owned(),
        JavaError::Refused(text) => format!("it says: {text}"),
        JavaError::Io(error) => reason(error),
    };
    Some(Note::new(format!("Java process {pid} did not name its methods: {why}"), mend))
}

/// What could be better, one note for each runtime. `ask_java` is the command that asks Java VMs for
/// their names, where they were not asked.
pub fn of_runtimes(targets: &[JitTarget], ask_java: Option<&str>) -> Vec<Note> {
    let mut notes = Vec::new();
    let targets = targets.iter().filter(|target| !target.is_read);
    let of = |runtime| targets.clone().filter(move |target| target.runtime == Some(runtime));
    if let Some(target) = of(Runtime::Java).find(|target| target.unnamed > 0)
        && let Some(ask_java) = ask_java
    {
        let mend = format!("{ask_java} (or {DUMP_AT_EXIT})");
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
        let notes = of_runtimes(targets, (!asked_java).then_some("flame record --java"));
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
