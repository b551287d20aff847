//! Runtimes that compile code while they run: which one a process is, and how it names code.

use std::sync::Arc;

use flame_symbolize::CodeName;

/// A runtime that flame knows something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// A HotSpot VM.
    Java,
    /// Node.js.
    Node,
    /// PHP, which compiles with opcache.jit only.
    Php,
    /// LuaJIT, within whatever program.
    LuaJit,
    /// Ruby, which compiles with --yjit only.
    Ruby,
    /// .NET's own runtime.
    DotNet,
}

/// Files of a runtime whose names have a version in them.
#[derive(Clone, Copy, Debug)]
struct Known {
    runtime: Runtime,
    /// What the name begins with.
    start: &'static [u8],
    is_library: bool,
}

/// As distributions call them: libnode.so.108, php8.2, php-fpm8.2, libphp8.2.so, luajit-2.1.0-beta3,
/// libluajit-5.1.so.2, ruby3.1, libruby-3.1.so.3.1.7.
const KNOWN: [Known; 8] = [
    Known { runtime: Runtime::Node, start: b"libnode", is_library: true },
    Known { runtime: Runtime::Php, start: b"php-fpm", is_library: false },
    Known { runtime: Runtime::Php, start: b"php", is_library: false },
    Known { runtime: Runtime::Php, start: b"libphp", is_library: true },
    Known { runtime: Runtime::LuaJit, start: b"luajit", is_library: false },
    Known { runtime: Runtime::LuaJit, start: b"libluajit-5.1", is_library: true },
    Known { runtime: Runtime::Ruby, start: b"ruby", is_library: false },
    Known { runtime: Runtime::Ruby, start: b"libruby", is_library: true },
];

impl Known {
    fn is(self, name: &[u8]) -> bool {
        let Some(rest) = name.strip_prefix(self.start) else { return false };
        if self.is_library {
            let version = rest.windows(3).position(|part| part == b".so").map(|at| &rest[..at]);
            return version.is_some_and(is_version);
        }
        is_version(rest)
    }
}

/// Whether text is a version, or nothing: digits, dots and what begins with a dash.
fn is_version(text: &[u8]) -> bool {
    let text = text.split(|byte| *byte == b'-').next().unwrap_or_default();
    text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

impl Runtime {
    /// The runtime whose image that is, by its path.
    pub fn of_image(path: &[u8]) -> Option<Runtime> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        match name {
            b"libjvm.so" => Some(Runtime::Java),
            b"node" => Some(Runtime::Node),
            b"libcoreclr.so" => Some(Runtime::DotNet),
            _ => KNOWN.into_iter().find(|known| known.is(name)).map(|known| known.runtime),
        }
    }

    /// Brings a name into the form that people know from the runtime's other tools.
    pub(crate) fn tidy(self, name: &mut CodeName) {
        if self == Runtime::Java
            && let Some(tidy) = tidy_java_name(&name.name)
        {
            name.name = Arc::from(tidy);
        }
    }
}

/// `Lpkg/Class;::method` for `int pkg.Class.method(int, long)`, the form that flame graphs of Java
/// have had since perf-map-agent; `None` for what is not a method. Hidden classes lose their address,
/// which is another one in each run.
fn tidy_java_name(name: &str) -> Option<String> {
    let (head, _arguments) = name.strip_suffix(')')?.split_once('(')?;
    let (_result, path) = head.rsplit_once(' ')?;
    let (class, method) = path.rsplit_once('.')?;
    let class =
        ["/0x", "+0x"].iter().find_map(|mark| Some(class.split_once(mark)?.0)).unwrap_or(class);
    let is_name = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    if !is_name(class) || !is_name(method) {
        return None;
    }
    Some(format!("L{};::{method}", class.replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_their_images() {
        let cases: [(&[u8], Option<Runtime>); 18] = [
            (b"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", Some(Runtime::Java)),
            (b"/opt/jdk/lib/server/libjvm.so (deleted)", Some(Runtime::Java)),
            (b"/usr/bin/node", Some(Runtime::Node)),
            (b"/usr/lib/x86_64-linux-gnu/libnode.so.108", Some(Runtime::Node)),
            (b"/usr/bin/nodes", None),
            (b"//anon", None),
            (b"/usr/bin/php8.2", Some(Runtime::Php)),
            (b"/usr/sbin/php-fpm8.2", Some(Runtime::Php)),
            (b"/usr/lib/apache2/modules/libphp8.2.so", Some(Runtime::Php)),
            (b"/usr/bin/phpunit", None),
            (b"/usr/bin/luajit-2.1.0-beta3", Some(Runtime::LuaJit)),
            (b"/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0", Some(Runtime::LuaJit)),
            (b"/usr/bin/ruby3.1", Some(Runtime::Ruby)),
            (b"/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.7", Some(Runtime::Ruby)),
            (b"/usr/bin/rubyfmt", None),
            (
                b"/usr/lib/dotnet/shared/Microsoft.NETCore.App/8.0.1/libcoreclr.so",
                Some(Runtime::DotNet),
            ),
            (b"/usr/lib/libphpstuff.so", None),
            (b"/usr/lib/libruby", None),
        ];
        for (path, expect) in cases {
            assert_eq!(Runtime::of_image(path), expect, "{}", String::from_utf8_lossy(path));
        }
    }

    #[test]
    fn methods_have_the_form_of_java_flame_graphs() {
        let cases = [
            ("long Work.alpha(long)", Some("LWork;::alpha")),
            ("void java.lang.String.<init>(byte[], byte)", Some("Ljava/lang/String;::<init>")),
            ("java.lang.Object a.b.C$D.get(java.lang.Object, long)", Some("La/b/C$D;::get")),
            ("void Work$$Lambda$14/0x0000000800c03000.run()", Some("LWork$$Lambda$14;::run")),
            ("void Work$$Lambda+0x00007f8a2c001000.run()", Some("LWork$$Lambda;::run")),
            ("StubRoutines (1)", None),
            ("Interpreter", None),
            ("vtable stub", None),
            ("LWork;::alpha", None),
            ("f()", None),
            ("a .(b)", None),
        ];
        for (name, expect) in cases {
            assert_eq!(tidy_java_name(name).as_deref(), expect, "{name}");
        }
    }
}
