//! What the first frame of a folded stack is: a thread, or a function already.
//!
//! The collapsing scripts for perf put the thread's name there, as flame does; those for DTrace,
//! bpftrace, Go or Java samplers have none, and start with the outermost function. Only what no
//! thread is called is taken for a function, and `main`, which is the name of many a program and of
//! Java's first thread, only in a file in which no stack is seen to begin with a thread.

use super::line::{cut_count, is_comment};
use crate::frame::is_mark_name;

/// A name of threads is no longer than this on Linux.
const MAX_COMM: usize = 15;

/// Where threads start: in C libraries, Go, Java VMs and kernels.
const STARTS: [&str; 28] = [
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "thread_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "runtime.main",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.mcall",
    "runtime.rt0_go",
    "runtime.morestack",
    "runtime.systemstack",
    "ret_from_fork",
    "ret_from_fork_asm",
    "do_syscall_64",
    "asm_exc_page_fault",
    "cpu_startup_entry",
    "start_secondary",
    "thread_native_entry",
    "_pthread_start",
    "BaseThreadInitThunk",
    "RtlUserThreadStart",
    "__clone_internal",
];

/// What first frames may be that are called like threads and functions alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstFrames {
    /// Threads, all that may be one.
    #[default]
    Threads,
    /// Threads, but for what is called `main`.
    ThreadsOrMain,
}

impl FirstFrames {
    /// What those of a text are whose start this is: where a stack goes on behind its first frame with
    /// what a thread begins with, first frames are threads.
    pub fn detect(start: &[u8]) -> FirstFrames {
        let lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut stacks = lines.filter(|line| !is_comment(line)).filter_map(|line| {
            let (stack, _) = cut_count(line)?;
            Some(cut_count(stack).map_or(stack, |(stack, _)| stack))
        });
        let has_thread = stacks.any(|stack| {
            let mut frames = stack.split(|byte| *byte == b';');
            let mut next = || frames.next().and_then(|frame| std::str::from_utf8(frame).ok());
            let (Some(first), Some(second)) = (next(), next()) else { return false };
            !is_function(first, FirstFrames::Threads) && starts_thread(second)
        });
        if has_thread { FirstFrames::Threads } else { FirstFrames::ThreadsOrMain }
    }
}

/// Whether a function that another one called has no such name.
fn starts_thread(name: &str) -> bool {
    STARTS.contains(&name)
        || is_mark_name(name.as_bytes())
        || name == "main"
        || name.ends_with(".main")
}

/// Whether the first name of a stack, without annotation, is that of a function.
pub(super) fn is_function(name: &str, first_frames: FirstFrames) -> bool {
    let has_arguments = name.ends_with(')') && name.find('(').is_some_and(|at| at > 0);
    STARTS.contains(&name)
        || (name == "main" && first_frames == FirstFrames::ThreadsOrMain)
        || name.ends_with(".main")
        || is_long_identifier(name)
        || name.contains("::")
        || name.contains('`')
        || name.starts_with('<')
        || has_arguments
        || is_java(name)
}

/// Whether it is written like a function of C, and longer than the kernel lets names of threads be:
/// `entry_SYSCALL_64_after_hwframe`.
fn is_long_identifier(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.len() > MAX_COMM && name.contains('_') && name.bytes().all(is_part)
}

/// Whether it is a method as Java's profilers write it: `java/lang/Thread.run`. Names of threads
/// have a slash before a number: `kworker/0:1`, `nginx-12/34`.
fn is_java(name: &str) -> bool {
    let Some((package, method)) = name.rsplit_once('/') else { return false };
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || "<_$".contains(c));
    is_name(package)
        && !package.contains([' ', ':', '-'])
        && method
            .split_once('.')
            .is_some_and(|(class, name)| class.starts_with(char::is_uppercase) && is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_from_threads_where_that_is_certain() {
        let functions = [
            "_start",
            "start_thread",
            "runtime.goexit",
            "std::thread::start",
            "<module> (app.py:1)",
            "handle (server.py)",
            "libc.so.6`__libc_start_main",
            "java/lang/Thread.run",
            "io/netty/x/Loop.<init>",
            "operator()(int)",
            "main.main",
            "com.example.Main.main",
            "runtime.mcall",
            "entry_SYSCALL_64_after_hwframe",
            "secondary_startup_64",
        ];
        let threads = [
            "main",
            "python3.11",
            "kworker/0:1-events",
            "kworker/u8:2",
            "nginx-12/34",
            "redis-?/17",
            "(sd-pam)",
            "C2_CompilerThre",
            "GC Thread#0",
            "make/x.y 1",
            "cargo/rustc",
            "a;b",
            "",
            "crypto_worker_1",
            "ForkJoinPool.commonPool-worker-1",
            "SurefireForkedJVMStreamReader",
            "pool_1-thread-12",
        ];
        for name in functions {
            assert!(is_function(name, FirstFrames::Threads), "{name}");
        }
        for name in threads {
            assert!(!is_function(name, FirstFrames::Threads), "{name}");
            let is_main = name == "main";
            assert_eq!(is_function(name, FirstFrames::ThreadsOrMain), is_main, "{name}");
        }
    }

    #[test]
    fn main_is_a_thread_in_files_that_have_threads() {
        let with_threads = [
            "main;_start;__libc_start_main;main;work 1\n",
            "main;main;work 1\n",
            "main;com.example.Main.main 1\n",
            "main;[truncated stack];work 1\n",
            // Said of another thread; two counts; behind other lines.
            "main;work 1\nworker;clone3;start_thread;main_loop 1\n",
            "# a comment\nmain;work 3 4\r\nmain;_start 5 6\r\n",
        ];
        for text in with_threads {
            assert_eq!(FirstFrames::detect(text.as_bytes()), FirstFrames::Threads, "{text}");
        }
        let without = [
            "",
            "main 1\n",
            "main;work 1\nmain;other;deeper 2\n",
            // The thread's first function is there itself.
            "_start;main;work 1\nstart_thread;clone3 1\nmain;broken 1\n",
            "# main;_start 1\nmain;work 1\n",
            "main;caf\u{e9} 1\n",
        ];
        for text in without {
            assert_eq!(FirstFrames::detect(text.as_bytes()), FirstFrames::ThreadsOrMain, "{text}");
        }
    }
}
