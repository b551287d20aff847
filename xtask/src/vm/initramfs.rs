//! What a machine's memory holds when it starts: busybox, flame, the programs that are recorded,
//! and the cases.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::cases::Case;
use super::packages::run;

/// The first program of a machine, and what its cases share.
const INIT: &str = include_str!("guest/init");
const LIB: &str = include_str!("guest/lib.sh");

/// Libraries that flame or a program is linked with.
const LIBRARIES: [&str; 3] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1"];

/// Where they are, and the loader, below the root of this machine and of those.
const LIBRARY_PLACE: &str = "lib/x86_64-linux-gnu";
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";

/// Programs: the name in the machine, and the source below tests/programs.
const PROGRAMS: &[(&str, &str)] = &[
    ("burn", "exitcode.c"),
    ("events", "events.c"),
    ("shares", "shares.c"),
    ("syscalls", "syscalls.c"),
    ("wide_deep", "wide_deep.c"),
];

/// The files that all machines of a kind have.
pub(super) struct Root {
    place: PathBuf,
}

impl Root {
    /// Builds flame and the programs. Says why where something is missing that cannot be built.
    pub(super) fn build(directory: &Path) -> Result<Root> {
        let place = directory.join("root");
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        for name in
            ["bin", "etc", "proc", "sys", "dev", "tmp", "root", "cases", "lib64", LIBRARY_PLACE]
        {
            fs::create_dir_all(place.join(name))?;
        }
        install(Path::new("/bin/busybox"), &place.join("bin/busybox"))?;
        install(&flame()?, &place.join("bin/flame"))?;
        for name in LIBRARIES {
            let library = Path::new(LIBRARY_PLACE).join(name);
            install(&Path::new("/").join(&library), &place.join(library))?;
        }
        install(&Path::new("/").join(LOADER), &place.join(LOADER))?;
        programs(&place.join("bin"))?;
        fs::write(place.join("init"), INIT)?;
        fs::set_permissions(place.join("init"), fs::Permissions::from_mode(0o755))?;
        fs::write(place.join("lib.sh"), LIB)?;
        fs::write(
            place.join("etc/passwd"),
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
        )?;
        fs::write(place.join("etc/group"), "root:x:0:\nnogroup:x:65534:\n")?;
        Ok(Root { place })
    }

    /// Packs it with the cases.
    pub(super) fn pack(&self, cases: &[Case], image: &Path) -> Result<()> {
        let directory = self.place.join("cases");
        fs::remove_dir_all(&directory)?;
        fs::create_dir(&directory)?;
        for (number, case) in cases.iter().enumerate() {
            // The shell goes through them in the order of their names.
            fs::write(directory.join(format!("{number:02}-{}", case.name)), &case.script)?;
        }
        let script = "cd \"$1\" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1 >\"$2\"";
        run(Command::new("sh").args(["-c", script, "sh"]).arg(&self.place).arg(image))
    }
}

/// Builds flame as it is shipped.
fn flame() -> Result<PathBuf> {
    eprintln!("== cargo build --release -p flame");
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(["build", "-q", "--release", "-p", "flame"]).stdin(Stdio::null());
    ensure!(command.status()?.success(), "flame cannot be built");
    Ok(PathBuf::from("target/release/flame"))
}

fn programs(place: &Path) -> Result<()> {
    for (name, source) in PROGRAMS {
        let mut command = Command::new("gcc");
        command.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(place.join(name));
        run(command.arg(Path::new("tests/programs").join(source)))?;
    }
    let mut command = Command::new("gcc");
    run(command.args(["-O2", "-o"]).arg(place.join("setcap")).arg("xtask/src/vm/guest/setcap.c"))
}

/// Copies a program or library, flame without its debug information: a machine's memory is small.
fn install(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    if from.ends_with("flame") {
        run(Command::new("strip").arg("--strip-debug").arg(to))?;
    }
    Ok(())
}
