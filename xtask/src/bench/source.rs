//! A large C file to compile: the one of `FLAME_BENCH_C`, SQLite's amalgamation where cargo has
//! it, or one made up here, always the same.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Functions in a generated file; its compilation takes about as long as SQLite's.
const GENERATED_FUNCTIONS: u32 = 4000;

/// The file to compile.
pub(crate) fn find(directory: &Path) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("FLAME_BENCH_C").map(PathBuf::from) {
        ensure!(path.is_file(), "FLAME_BENCH_C={}: no such file", path.display());
        return Ok(path);
    }
    if let Some(path) = sqlite() {
        return Ok(path);
    }
    let path = directory.join("generated.c");
    fs::write(&path, generate(GENERATED_FUNCTIONS)).context("generated.c")?;
    eprintln!("   no sqlite3.c found and no FLAME_BENCH_C: compiling a generated file");
    Ok(path)
}

/// SQLite's one big file among the sources that cargo downloaded for some other project.
fn sqlite() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    let packages = registries.filter_map(|registry| fs::read_dir(registry.ok()?.path()).ok());
    let packages = packages.flatten().filter_map(|package| Some(package.ok()?.path()));
    let mut files: Vec<PathBuf> = packages
        .filter(|path| path.to_string_lossy().contains("libsqlite3-sys"))
        .map(|path| path.join("sqlite3/sqlite3.c"))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.pop()
}

/// A C file with that many functions of loops, branches, switches and calls of earlier ones.
fn generate(functions: u32) -> String {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let mut text = String::from("#include <stdint.h>\n\nstatic int64_t table[4096];\n");
    for function in 0..functions {
        let _ = writeln!(text, "\nint64_t f{function}(int64_t a, int64_t b, int64_t *p) {{");
        let _ = writeln!(text, "    int64_t x = a * {} + b;", next(1000) + 3);
        for _ in 0..next(5) + 3 {
            let (shift, mask) = (next(31) + 1, next(4095) + 1);
            let _ = writeln!(text, "    for (int64_t i = 0; i < (b & {mask}); i++) {{");
            let _ = writeln!(text, "        x ^= (x >> {shift}) + p[i & 7] * i;");
            let _ = writeln!(text, "        if (x & {}) table[x & 4095] += x;", next(255) + 1);
            let _ = writeln!(text, "        else p[x & 7] -= table[i & 4095];\n    }}");
        }
        let _ = writeln!(text, "    switch (x & 15) {{");
        for case in 0..8 {
            let _ = writeln!(text, "    case {case}: x = x * {} - a; break;", next(100) + 2);
        }
        let _ = writeln!(text, "    default: x += b;\n    }}");
        if function > 0 {
            let _ = writeln!(text, "    x += f{}(x, a, p);", next(u64::from(function)));
        }
        let _ = writeln!(text, "    return x;\n}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_file_is_the_same_every_time() {
        assert_eq!(generate(20), generate(20));
        assert_eq!(generate(20).matches("\nint64_t f").count(), 20);
    }
}
