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

/// The one of programs in C++.
const CPP_LIBRARY: &str = "libstdc++.so.6";

/// Programs: the name in the machine, the source below tests/programs, and options of the compiler.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("allocations", "allocations.c", &[]),
    ("burn", "exitcode.c", &[]),
    ("crowd", "crowd.c", &[]),
    ("events", "events.c", &[]),
    ("lockstep", "lockstep.c", &[]),
    ("shares", "shares.c", &[]),
    ("shares_static", "shares.c", &["-static"]),
    ("shares_fp", "shares.c", &["-fno-omit-frame-pointer"]),
    ("shares_stripped", "shares.c", &["-rdynamic", "-s"]),
    ("syscalls", "syscalls.c", &[]),
    ("transfers", "transfers.c", &[]),
    ("waits", "waits.c", &[]),
    ("wide_deep", "wide_deep.c", &[]),
];

/// Those of the guest itself.
const TOOLS: [&str; 4] = ["apart", "setcap", "terminal", "timers"];

/// Only where nothing else is tried on: the processor signs return addresses, and no test of another kind runs there.
const ARM_PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("shares_pac", "shares.c", &["-mbranch-protection=standard"]),
    ("kernels_frames", "kernels_frames.c", &[]),
    ("thrown", "thrown.cpp", &[]),
];

/// The files that all machines of a kind have.
pub(super) struct Root {
    place: PathBuf,
}

impl Root {
    /// Builds the programs, and flame unless there is one. Says why where something is missing that cannot be built.
    pub(super) fn build(directory: &Path, arch: Arch, built: Option<&Path>) -> Result<Root> {
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
        install(
            &built.map_or_else(|| flame(arch), |built| Ok(built.to_owned()))?,
            &place.join("bin/flame"),
        )?;
        run(Command::new(arch.strip()).arg("--strip-debug").arg(place.join("bin/flame")))?;
        let of_cpp = (arch == Arch::Arm).then_some(CPP_LIBRARY);
        for name in LIBRARIES.into_iter().chain(of_cpp) {
            install(&Path::new(libraries).join(name), &place.join(libraries_there).join(name))?;
        }
        let name = Path::new(loader).file_name().context("a loader has a name")?;
        install(&Path::new(libraries).join(name), &place.join(loader))?;
        programs(compiler, arch, &place.join("bin"))?;
        if arch == Arch::Arm {
            in_rust_and_go(&place.join("bin"))?;
        }
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

/// Builds flame as it is shipped, but for what asks servers: the machines have no network.
fn flame(arch: Arch) -> Result<PathBuf> {
    let target = arch.target();
    eprintln!("== cargo build --release -p flame, for {target}");
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(["build", "-q", "--release", "-p", "flame", "--no-default-features"]);
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
    let others = if arch == Arch::Arm { ARM_PROGRAMS } else { &[] };
    for (name, source, options) in PROGRAMS.iter().chain(others) {
        let compiler = match source.ends_with(".cpp") {
            true => arch.cpp_compiler(),
            false => compiler,
        };
        let mut command = Command::new(compiler);
        command.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(place.join(name));
        command.arg(Path::new("tests/programs").join(source)).args(*options);
        run(&mut command)?;
    }
    TOOLS.iter().try_for_each(|name| {
        let mut command = Command::new(compiler);
        let source = format!("xtask/src/vm/guest/{name}.c");
        run(command.args(["-O2", "-o"]).arg(place.join(name)).arg(source))
    })
}

/// Programs of other languages, for arm64.
fn in_rust_and_go(place: &Path) -> Result<()> {
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "--edition", "2021", "--target", Arch::Arm.target()]);
    rustc
        .arg(format!("-Clinker={}", Arch::Arm.toolchain().0))
        .arg("-o")
        .arg(place.join("turns_rs"));
    run(rustc.arg("tests/programs/inlining.rs"))?;
    let mut go = Command::new("go");
    go.envs([("GOOS", "linux"), ("GOARCH", "arm64"), ("GO111MODULE", "off"), ("CGO_ENABLED", "0")]);
    go.args(["build", "-o"]).arg(place.join("rounds")).arg("tests/programs/rounds.go");
    run(&mut go)
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
