//! Runtimes that compile code while they run: which one a process is, how it names code, and what
//! it must be told for its code to have names and whole stacks.

pub(crate) mod java;

use std::sync::Arc;

use flame_symbolize::CodeName;

/// A runtime that flame knows something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
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
            && let Some(tidy) = java::tidy_name(&name.name)
        {
            name.name = Arc::from(tidy);
        }
    }
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
}
