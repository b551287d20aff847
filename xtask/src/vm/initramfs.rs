//! What a machine's memory holds when it starts: busybox, flame, the programs that are recorded,
//! and the cases.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::cases::Case;
use super::machine::Arch;
use super::packages::run;

/// The first program of a machine, and what its cases share.
const INIT: &str = include_str!("guest/init");
const LIB: &str = include_str!("guest/lib.sh");

/// Libraries that flame or a program is linked with.
const LIBRARIES: [&str; 3] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1"];

/// Programs: the name in the machine, the source below tests/programs, and options of the compiler.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("burn", "exitcode.c", &[]),
    ("crowd", "crowd.c", &[]),
    ("events", "events.c", &[]),
    ("lockstep", "lockstep.c", &[]),
    ("shares", "shares.c", &[]),
    ("shares_static", "shares.c", &["-static"]),
    ("shares_fp", "shares.c", &["-fno-omit-frame-pointer"]),
    ("shares_stripped", "shares.c", &["-rdynamic", "-s"]),
    ("syscalls", "syscalls.c", &[]),
    ("wide_deep", "wide_deep.c", &[]),
];

/// Only where the processor signs return addresses.
const SIGNED: (&str, &str, &[&str]) = ("shares_pac", "shares.c", &["-mbranch-protection=standard"]);

/// The files that all machines of a kind have.
pub(super) struct Root {
    place: PathBuf,
}

impl Root {
    /// Builds flame and the programs. Says why where something is missing that cannot be built.
    pub(super) fn build(directory: &Path, arch: Arch) -> Result<Root> {
        let place = directory.join("root").join(arch.debian());
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        let (compiler, libraries) = arch.toolchain();
        let (loader, libraries_there) = arch.loader();
        for name in [
            "bin",
            "etc",
            "proc",
            "sys",
            "dev",
            "tmp",
            "root",
            "cases",
            "lib",
            "lib64",
            libraries_there,
        ] {
            fs::create_dir_all(place.join(name))?;
        }
        busybox(directory, arch, &place.join("bin/busybox"))?;
        install(&flame(arch)?, &place.join("bin/flame"))?;
        run(Command::new(arch.strip()).arg("--strip-debug").arg(place.join("bin/flame")))?;
        for name in LIBRARIES {
            install(&Path::new(libraries).join(name), &place.join(libraries_there).join(name))?;
        }
        let name = Path::new(loader).file_name().context("a loader has a name")?;
        install(&Path::new(libraries).join(name), &place.join(loader))?;
        programs(compiler, arch, &place.join("bin"))?;
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
fn flame(arch: Arch) -> Result<PathBuf> {
    let target = arch.target();
    eprintln!("== cargo build --release -p flame, for {target}");
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(["build", "-q", "--release", "-p", "flame"]);
    let mut place = PathBuf::from("target");
    if arch != Arch::X86 {
        let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
        command.args(["--target", target]).env(linker, arch.toolchain().0);
        place.push(target);
    }
    ensure!(
        command.stdin(Stdio::null()).status()?.success(),
        "flame cannot be built for {target}; is it there? rustup target add {target}"
    );
    Ok(place.join("release/flame"))
}

fn programs(compiler: &str, arch: Arch, place: &Path) -> Result<()> {
    let signed = (arch == Arch::Arm).then_some(&SIGNED);
    for (name, source, options) in PROGRAMS.iter().chain(signed) {
        let mut command = Command::new(compiler);
        command.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(place.join(name));
        command.arg(Path::new("tests/programs").join(source)).args(*options);
        run(&mut command)?;
    }
    let mut command = Command::new(compiler);
    run(command.args(["-O2", "-o"]).arg(place.join("setcap")).arg("xtask/src/vm/guest/setcap.c"))
}

/// The host's own where it is of that kind, or else the package's.
fn busybox(directory: &Path, arch: Arch, place: &Path) -> Result<()> {
    let host = Path::new("/bin/busybox");
    if arch == Arch::X86 && host.exists() {
        return install(host, place);
    }
    let busybox = super::packages::file_of(directory, arch, "busybox-static", "bin/busybox")?;
    install(&busybox, place)
}

/// Copies a program or library.
fn install(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}
