//! What the first frame of a folded stack is: a thread, or a function already.
//!
//! The collapsing scripts for perf put the thread's name there, as flame does; those for DTrace,
//! bpftrace, Go or Java samplers have none, and start with the outermost function. Only what no
//! thread is called is taken for a function: `main` may well be the name of a program.

/// Where threads start, on Linux and in Go.
const STARTS: [&str; 14] = [
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
    "ret_from_fork",
];

/// Whether the first name of a stack, without annotation, is that of a function.
pub(super) fn is_function(name: &str) -> bool {
    let has_arguments = name.ends_with(')') && name.find('(').is_some_and(|at| at > 0);
    STARTS.contains(&name)
        || name.contains("::")
        || name.contains('`')
        || name.starts_with('<')
        || has_arguments
        || is_java(name)
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
        ];
        for name in functions {
            assert!(is_function(name), "{name}");
        }
        for name in threads {
            assert!(!is_function(name), "{name}");
        }
    }
}
