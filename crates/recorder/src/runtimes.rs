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
}

impl Runtime {
    /// The runtime whose image that is, by its path.
    pub(crate) fn of_image(path: &[u8]) -> Option<Runtime> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        match name {
            b"libjvm.so" => Some(Runtime::Java),
            b"node" => Some(Runtime::Node),
            // Distributions have the runtime as a library: libnode.so.108.
            _ => name.starts_with(b"libnode.so").then_some(Runtime::Node),
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
/// have had since perf-map-agent; `None` for what is no method. Hidden classes lose their address,
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
        let cases: [(&[u8], Option<Runtime>); 6] = [
            (b"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", Some(Runtime::Java)),
            (b"/opt/jdk/lib/server/libjvm.so (deleted)", Some(Runtime::Java)),
            (b"/usr/bin/node", Some(Runtime::Node)),
            (b"/usr/lib/x86_64-linux-gnu/libnode.so.108", Some(Runtime::Node)),
            (b"/usr/bin/nodes", None),
            (b"//anon", None),
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
