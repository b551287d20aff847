//! What makes the code of a runtime have names and whole stacks, for the notes of a recording and for
//! the doctor.

use flame_recorder::Runtime;

/// What is known of the code that a runtime makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What people call the runtime.
    pub name: &'static str,
    /// What it compiles, in the plural.
    pub code: &'static str,
    /// What brings names, where something does.
    pub names: Option<&'static str>,
    /// What its code lacks for whole stacks, and what mends it.
    pub stacks: Option<(&'static str, &'static str)>,
}

/// What code lacks that is made for nobody to look at.
const NOTHING: &str = "neither frame pointers nor unwind tables";

/// The advice on a runtime's code.
pub fn advice(runtime: Runtime) -> Advice {
    match runtime {
        Runtime::Java => Advice {
            name: "Java",
            code: "compiled Java methods",
            // It is asked for them.
            names: None,
            stacks: Some(("no frame pointers", "start Java with -XX:+PreserveFramePointer")),
        },
        Runtime::Node => Advice {
            name: "Node.js",
            code: "JavaScript functions",
            names: Some("start node with --perf-basic-prof --interpreted-frames-native-stack"),
            stacks: None,
        },
        Runtime::Php => Advice {
            name: "PHP",
            code: "functions that PHP compiled",
            names: Some("start PHP with -d opcache.jit_debug=16"),
            stacks: Some((
                NOTHING,
                "start PHP with -d opcache.jit=off, and -d pcre.jit=0 for regular expressions",
            )),
        },
        Runtime::LuaJit => Advice {
            name: "LuaJIT",
            code: "traces of LuaJIT",
            names: None,
            stacks: Some((NOTHING, "luajit -joff, or jit.off() in the program")),
        },
        Runtime::Ruby => Advice {
            name: "Ruby",
            code: "methods that YJIT compiled",
            names: Some("start ruby with --yjit --yjit-perf (3.3 or later), or without --yjit"),
            stacks: Some((
                NOTHING,
                "start ruby with --yjit --yjit-perf (3.3 or later), or without --yjit",
            )),
        },
        Runtime::DotNet => Advice {
            name: ".NET",
            code: "methods that .NET compiled",
            names: Some("start it with DOTNET_PerfMapEnabled=1"),
            stacks: None,
        },
    }
}
