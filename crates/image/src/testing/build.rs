//! Programs that tests build with real compilers and take apart with real tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flame_profile::ImageAddress;

use crate::ImageFile;

/// A function that only `.symtab` names, with two more inlined into it that only DWARF has.
pub const SOURCE: &str = r#"
static inline __attribute__((always_inline)) int twist(int x) {
    __asm__ volatile("nop");
    return x * 3 + 1;
}
static inline __attribute__((always_inline)) int turn(int x) {
    return twist(x) ^ 5;
}
static __attribute__((noinline)) int hidden(int x) {
    return turn(x) + 7;
}
int main(int argc, char **argv) { return hidden(argc) == 0; }
"#;

/// As many functions as it takes for sections of some length.
pub fn many_functions() -> String {
    let function = |i: usize| {
        format!("int many_{i}(int first, int second, long third) {{ return first + {i}; }}\n")
    };
    (0..4000).map(function).collect()
}

/// The frames at the `nop` of [`SOURCE`], innermost first, as DWARF has them.
pub const FULL: [&str; 3] = ["twist", "turn", "hidden"];

/// A directory of one test, removed at its end.
#[derive(Debug)]
pub struct Workshop {
    pub dir: PathBuf,
}

impl Workshop {
    pub fn new(test: &str) -> Workshop {
        let dir = std::env::temp_dir().join(format!("flame-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        // Tools resolve links; what they write into files has to be the path that tests expect.
        Workshop { dir: dir.canonicalize().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn move_to(&self, from: &str, to: &str) {
        let to = self.path(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(self.path(from), to).unwrap();
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Runs a command line of words without blanks, in this directory; whether it can be run at
    /// all. A tool that runs and fails fails the test.
    #[track_caller]
    pub fn run(&self, line: &str) -> bool {
        let mut words = line.split_ascii_whitespace();
        let program = words.next().unwrap();
        // Some tools loop over what other compilers wrote.
        let mut command = Command::new("timeout");
        command.args(["60", program]).args(words).current_dir(&self.dir).stdin(Stdio::null());
        let output = command.output().expect("coreutils have timeout");
        if matches!(output.status.code(), Some(126 | 127)) {
            eprintln!("SKIP: cannot run {line}");
            return false;
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {stderr}");
        true
    }

    /// The same for several, one a line; the first that cannot be run ends it.
    #[track_caller]
    pub fn run_all(&self, lines: &str) -> bool {
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| self.run(line))
    }

    /// Where the `nop` of [`SOURCE`] is in a program that still has its symbols: in `hidden`.
    #[track_caller]
    pub fn nop(&self, program: &str) -> ImageAddress {
        let mut objdump = Command::new("objdump");
        let output = objdump
            .args(["-d", "--no-show-raw-insn"])
            .arg(self.path(program))
            .output()
            .expect("binutils have objdump");
        let text = String::from_utf8(output.stdout).unwrap();
        let body = text.split("<hidden>:\n").nth(1).expect("the program has the function");
        let line = body.lines().find(|line| line.trim_end().ends_with("nop")).expect("a nop");
        let digits = line.split(':').next().unwrap().trim();
        ImageAddress(u64::from_str_radix(digits, 16).unwrap())
    }

    pub fn build_id(&self, program: &str) -> String {
        ImageFile::open(&self.path(program)).unwrap().build_id().unwrap().to_string()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Where a package of debug information would put the file of that build id.
pub fn by_build_id(id: &str) -> String {
    let (directory, file) = id.split_at(2);
    Path::new(".build-id").join(directory).join(format!("{file}.debug")).display().to_string()
}
