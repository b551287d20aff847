//! Which runtime compiles code in the process, and whether that code has stacks and names.

use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flame_recorder::look_at_java;
use flame_sampler::may_go_first;

use crate::check::Check;
use crate::process::Process;
use crate::runtime_advice::{Advice, advice};

/// The first Python that can name its functions for profilers.
const PYTHON_WITH_NAMES: u32 = 12;

/// The versions whose functions are read from memory, by their second number.
const READ_PYTHONS: RangeInclusive<u32> = 8..=15;

/// A runtime that was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    Java,
    Node,
    /// Python 3, with its minor version where its files say it.
    Python(Option<u32>),
    /// Python 3 without the lock that all threads share.
    FreeThreadedPython,
    Perl,
    Lua,
    LuaJit,
    Ruby,
    Php,
}

/// The checks of the runtime, if there is one, and of code without a file.
pub(crate) fn examine(process: &Process) -> Vec<Check> {
    let paths = mapped_paths(process);
    let map = perf_map(process);
    match recognise(&paths) {
        Some(Runtime::Java) => java(process, map),
        Some(Runtime::Node) => vec![node(process, map)],
        Some(Runtime::Python(version)) => vec![python(process, map, version)],
        Some(Runtime::FreeThreadedPython) => vec![free_threaded(map)],
        Some(Runtime::Perl) => vec![read(process, "Perl names").unwrap_or_else(|missing| missing)],
        Some(Runtime::Lua) => vec![read(process, "Lua names").unwrap_or_else(|missing| missing)],
        Some(Runtime::LuaJit) => vec![luajit(process)],
        Some(Runtime::Ruby) => ruby(process, map, &paths),
        Some(Runtime::Php) => php(process, &paths, map),
        None if paths.iter().any(String::is_empty) => match compiling(&paths) {
            Some(runtime) => generated(&advice(runtime), map),
            None => vec![anonymous(map)],
        },
        None => Vec::new(),
    }
}

/// The paths of executable mappings; empty for those without a file.
fn mapped_paths(process: &Process) -> Vec<String> {
    let Some(space) = process.processes.space(process.pid) else { return Vec::new() };
    let keys = space.iter().filter_map(|mapping| process.processes.image(mapping.image));
    let path = |key: &flame_events::ImageKey| match key.is_anonymous() {
        true => String::new(),
        false => key.display_path(),
    };
    keys.map(path).collect()
}

fn recognise(paths: &[String]) -> Option<Runtime> {
    let names = || paths.iter().filter_map(|path| path.rsplit('/').next());
    if names().any(|name| name.starts_with("libjvm.so")) {
        return Some(Runtime::Java);
    }
    if names().any(|name| name == "node" || name.starts_with("libnode.so")) {
        return Some(Runtime::Node);
    }
    let python = |name: &str| {
        let name = name.strip_prefix("lib").unwrap_or(name);
        let rest = name.strip_prefix("python3")?;
        let minor =
            rest.strip_prefix('.').map(|rest| rest.split(['.', ' ']).next().unwrap_or(rest));
        let is_free_threaded = minor.is_some_and(|minor| minor.ends_with('t'));
        let version = || Runtime::Python(minor.and_then(|minor| minor.parse().ok()));
        Some(if is_free_threaded { Runtime::FreeThreadedPython } else { version() })
    };
    let is_perl =
        |name: &str| name == "perl" || name.starts_with("perl5") || name.starts_with("libperl.so");
    let is_lua = |name: &str| name.trim_start_matches("lib").starts_with("lua5.");
    let is_luajit = |name: &str| {
        name == "luajit" || name.starts_with("luajit-2.1") || name.starts_with("libluajit-5.1.so")
    };
    let is_ruby = |name: &str| {
        let rest = name.strip_prefix("libruby").or_else(|| name.strip_prefix("ruby"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '2', '3', '4']))
    };
    let ruby = || names().any(is_ruby).then_some(Runtime::Ruby);
    let luajit = || names().any(is_luajit).then_some(Runtime::LuaJit);
    let perl = || names().any(is_perl).then_some(Runtime::Perl);
    let lua = || names().any(is_lua).then_some(Runtime::Lua);
    let php = || {
        let is_php =
            |path| flame_recorder::Runtime::of_image(path) == Some(flame_recorder::Runtime::Php);
        paths.iter().any(|path| is_php(path.as_bytes())).then_some(Runtime::Php)
    };
    let found = names().find_map(python);
    found.or_else(perl).or_else(lua).or_else(luajit).or_else(ruby).or_else(php)
}

/// Whether the process has a perf map that a recording would believe, or why not.
fn perf_map(process: &Process) -> Result<String, String> {
    let path = match process.shares_files() {
        true => format!("/tmp/perf-{}.map", process.pid),
        false => process.path(&format!("root/tmp/perf-{}.map", process.inner_pid())),
    };
    let Ok(status) = fs::symlink_metadata(Path::new(&path)) else {
        return Err(format!("there is no {path}"));
    };
    if !status.is_file() {
        return Err(format!("{path} is not a regular file, and is ignored"));
    }
    if status.uid() != 0 && Some(status.uid()) != process.owner {
        return Err(format!("{path} belongs to another user, and is ignored"));
    }
    Ok(path)
}

fn java(process: &Process, map: Result<String, String>) -> Vec<Check> {
    let Process { pid, processes, files, memory, .. } = process;
    let why = match look_at_java(*pid, processes, files, memory) {
        Some(Ok(version)) => {
            let found = format!(
                "Java {version}: compiled, inlined and interpreted methods and their stacks are read from its \
                 memory"
            );
            return vec![Check::ok("Java methods", found)];
        }
        Some(Err(why)) => format!("the VM cannot be read: {why}"),
        None => "the VM has not started up yet".to_owned(),
    };
    let words = options(process, &["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"]);
    let frames = match words.iter().any(|word| word.contains("+PreserveFramePointer")) {
        true => Check::ok("Java stacks", "compiled code keeps frame pointers"),
        false => Check::missing("Java stacks", format!("{why}; its code keeps no frame pointers"))
            .fix("JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer java ..."),
    };
    let names = match map {
        Ok(path) => Check::ok("Java names", format!("in {path}")),
        Err(why) => Check::missing("Java names", why)
            .fix(format!("jcmd {} Compiler.perfmap", process.inner_pid())),
    };
    vec![frames, names]
}

fn node(process: &Process, map: Result<String, String>) -> Check {
    let words = options(process, &["NODE_OPTIONS"]);
    let asked = words.iter().any(|word| word.contains("--perf-basic-prof"));
    match map {
        Ok(path) => Check::ok("Node names", format!("in {path}")),
        Err(why) if asked => Check::missing("Node names", format!("--perf-basic-prof, but {why}")),
        Err(why) => Check::missing("Node names", format!("{why}: --perf-basic-prof writes it"))
            .fix("NODE_OPTIONS=--perf-basic-prof node ..."),
    }
}

/// Functions that are read from memory; the error is the same check where they cannot be.
fn read(process: &Process, name: &'static str) -> Result<Check, Check> {
    if may_go_first() {
        let found = "functions are read while it runs, if readers are in time";
        return Ok(Check::ok(name, found));
    }
    let why = "functions are read only where a reader gets the CPU at once: always with CAP_SYS_NICE, or a limit \
               of real-time priority";
    Err(Check::limited(name, why).fix(process.again()))
}

fn luajit(process: &Process) -> Check {
    let name = "LuaJIT names";
    let found = "functions are read while it runs, if readers are in time; of a trace, the function \
                 that it began in, not those compiled into it (luajit -joff, or jit.off())";
    read(process, name).map_or_else(|missing| missing, |_| Check::ok(name, found))
}

/// What Ruby interprets is read. Code without a file there is that of YJIT.
fn ruby(process: &Process, map: Result<String, String>, paths: &[String]) -> Vec<Check> {
    let name = "Ruby names";
    let found = "methods and blocks are read while it runs, as far as readers come in time; not those that YJIT \
                 compiles";
    let read = read(process, name).map_or_else(|missing| missing, |_| Check::ok(name, found));
    let mut checks = vec![read];
    if paths.iter().any(String::is_empty) {
        checks.extend(generated(
            &Advice { name: "YJIT", ..advice(flame_recorder::Runtime::Ruby) },
            map,
        ));
    }
    checks
}

/// Of code that its JIT has compiled nothing but the interpreter's share is seen. PCRE compiles regular expressions in
/// nearly every PHP: they rarely run for long, and do not make a profile incomplete.
fn php(process: &Process, paths: &[String], map: Result<String, String>) -> Vec<Check> {
    let mut checks = vec![read(process, "PHP names").unwrap_or_else(|missing| missing)];
    if has_shared_code(process) {
        checks.extend(generated(&advice(flame_recorder::Runtime::Php), map).pop());
    } else if paths.iter().any(String::is_empty) {
        let why = "stacks end in regular expressions that PCRE has compiled, which have neither frame \
                   pointers nor unwind tables";
        let check = Check::limited("PHP stacks", why).fix("start PHP with -d pcre.jit=0");
        checks.push(check.optional());
    }
    checks
}

/// Whether there is code in memory that processes share, as opcache has that of its JIT.
fn has_shared_code(process: &Process) -> bool {
    let Some(space) = process.processes.space(process.pid) else { return false };
    let mut keys = space.iter().filter_map(|mapping| process.processes.image(mapping.image));
    keys.any(|key| key.path.starts_with(b"/dev/zero"))
}

fn python(process: &Process, map: Result<String, String>, version: Option<u32>) -> Check {
    let name = "Python names";
    if version.is_none_or(|minor| READ_PYTHONS.contains(&minor)) {
        match (read(process, name), &map) {
            (Err(_), Ok(path)) => return Check::ok(name, format!("in {path}")),
            (Ok(check) | Err(check), _) => return check,
        }
    }
    match map {
        Ok(path) => return Check::ok(name, format!("in {path}")),
        Err(_) if version.is_some_and(|minor| minor < PYTHON_WITH_NAMES) => {
            let why = "functions are read of Python 3.8 to 3.15, and this one is older";
            return Check::missing(name, why);
        }
        Err(_) => {}
    }
    let words = process.words("cmdline").unwrap_or_default();
    let option = words.windows(2).any(|pair| pair[0] == "-X" && pair[1].starts_with("perf"));
    let values = environment(process, &["PYTHONPERFSUPPORT"]);
    let variable = values.iter().any(|value| !matches!(value.as_str(), "" | "0"));
    let asked = option || variable || words.iter().any(|word| word.starts_with("-Xperf"));
    match map {
        Err(why) if asked => Check::missing(name, format!("perf support is on, but {why}")),
        _ => Check::missing(name, "only the interpreter's own functions are seen")
            .fix("PYTHONPERFSUPPORT=1 python3 ..."),
    }
}

/// `python3.14t` and its library.
fn free_threaded(map: Result<String, String>) -> Check {
    let name = "Python names";
    match map {
        Ok(path) => Check::ok(name, format!("in {path}")),
        Err(_) => Check::missing(name, "functions are not read of Python without its global lock")
            .fix("PYTHONPERFSUPPORT=1 python3 ..."),
    }
}

/// The runtime that makes code only if it is told to, by the files of the process.
fn compiling(paths: &[String]) -> Option<flame_recorder::Runtime> {
    paths.iter().find_map(|path| flame_recorder::Runtime::of_image(path.as_bytes()))
}

/// The checks of code that such a runtime has made.
fn generated(advice: &Advice, map: Result<String, String>) -> Vec<Check> {
    let name = format!("{} names", advice.name);
    let names = match (map, advice.names) {
        (Ok(path), _) => Check::ok(name, format!("in {path}")),
        (Err(why), Some(mend)) => Check::missing(name, why).fix(mend),
        (Err(why), None) => Check::missing(name, format!("{why}, and nothing writes one")),
    };
    let stacks = advice.stacks.map(|(lack, mend)| {
        let why = format!("{} have {lack}: stacks end there", advice.code);
        Check::missing(format!("{} stacks", advice.name), why).fix(mend)
    });
    [Some(names), stacks].into_iter().flatten().collect()
}

fn anonymous(map: Result<String, String>) -> Check {
    match map {
        Ok(path) => Check::ok("code without a file", format!("named in {path}")),
        Err(why) => {
            let why = format!("{why}: what is compiled at run time has no names");
            Check::missing("code without a file", why)
        }
    }
}

/// The words of the command line, and the values of variables of the environment.
fn options(process: &Process, variables: &[&str]) -> Vec<String> {
    let mut words = process.words("cmdline").unwrap_or_default();
    words.extend(environment(process, variables));
    words
}

/// The values of those variables, as they were when the process began.
fn environment(process: &Process, variables: &[&str]) -> Vec<String> {
    let words = process.words("environ").unwrap_or_default();
    let values = words.into_iter().filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        variables.contains(&name).then(|| value.to_owned())
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], expect: Option<Runtime>) {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(recognise(&paths), expect, "{paths:?}");
    }

    #[test]
    fn runtimes_are_known_by_their_files() {
        check(&["/usr/bin/java", "/usr/lib/jvm/lib/server/libjvm.so"], Some(Runtime::Java));
        check(&["/usr/local/bin/node"], Some(Runtime::Node));
        check(&["/usr/bin/python3.11"], Some(Runtime::Python(Some(11))));
        check(&["/opt/bin/app", "/opt/lib/libpython3.13.so.1.0"], Some(Runtime::Python(Some(13))));
        check(&["/usr/bin/python3"], Some(Runtime::Python(None)));
        check(&["/opt/bin/python3.14t"], Some(Runtime::FreeThreadedPython));
        check(&["/opt/lib/libpython3.14t.so.1.0"], Some(Runtime::FreeThreadedPython));
        check(&["/usr/bin/perl"], Some(Runtime::Perl));
        check(&["/usr/sbin/apache2", "/usr/lib/libperl.so.5.36.0"], Some(Runtime::Perl));
        check(&["/usr/bin/lua5.4"], Some(Runtime::Lua));
        check(&["/usr/bin/luajit"], Some(Runtime::LuaJit));
        check(&["/usr/bin/ruby3.1"], Some(Runtime::Ruby));
        check(&["/opt/app", "/usr/lib/libruby-3.1.so.3.1.7"], Some(Runtime::Ruby));
        check(&["/usr/bin/rubyfmt"], None);
        check(&["/usr/bin/php8.2"], Some(Runtime::Php));
        check(&["/usr/sbin/apache2", "/usr/lib/apache2/modules/libphp8.2.so"], Some(Runtime::Php));
        check(&["/usr/sbin/nginx", "/usr/lib/libluajit-5.1.so.2.1.0"], Some(Runtime::LuaJit));
        check(&["/usr/sbin/haproxy", "/usr/lib/liblua5.4.so.0.0.0"], Some(Runtime::Lua));
        check(&["/usr/bin/nodes", "/usr/lib/libjvm-tools.so", "/usr/bin/perlite", ""], None);
    }
}
