//! The machines of the matrix.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::cases::{self, Case};
use super::packages::Wanted;

/// The kernel of Debian 12, and the one that it has besides, of Debian 13.
const OLD: Wanted = Wanted::Series("6.1.");
const LATE: Wanted = Wanted::Series("6.12.");

/// What a machine's processor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arch {
    X86,
    Arm,
}

impl Arch {
    /// What a program is for, by its ELF header.
    pub(super) fn of(program: &Path) -> Option<Arch> {
        let mut header = [0; 20];
        File::open(program).ok()?.read_exact(&mut header).ok()?;
        match u16::from_le_bytes([header[18], header[19]]) {
            62 => Some(Arch::X86),
            183 => Some(Arch::Arm),
            _ => None,
        }
    }

    /// The word of the distribution for it.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Arch::X86 => "amd64",
            Arch::Arm => "arm64",
        }
    }

    /// The word of Rust for it.
    pub(super) fn target(self) -> &'static str {
        match self {
            Arch::X86 => "x86_64-unknown-linux-gnu",
            Arch::Arm => "aarch64-unknown-linux-gnu",
        }
    }

    /// The C compiler, and the directory with the libraries of its programs.
    pub(super) fn toolchain(self) -> (&'static str, &'static str) {
        match self {
            Arch::X86 => ("gcc", "/lib/x86_64-linux-gnu"),
            Arch::Arm => ("aarch64-linux-gnu-gcc", "/usr/aarch64-linux-gnu/lib"),
        }
    }

    /// The C++ compiler.
    pub(super) fn cpp_compiler(self) -> &'static str {
        match self {
            Arch::X86 => "g++",
            Arch::Arm => "aarch64-linux-gnu-g++",
        }
    }

    /// All that builds its programs.
    pub(super) fn builders(self) -> &'static [&'static str] {
        match self {
            Arch::X86 => &["gcc"],
            Arch::Arm => &["aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "rustc", "go"],
        }
    }

    /// What takes debug information off programs.
    pub(super) fn strip(self) -> &'static str {
        match self {
            Arch::X86 => "strip",
            Arch::Arm => "aarch64-linux-gnu-strip",
        }
    }

    /// Where programs look for the dynamic loader, and for libraries.
    pub(super) fn loader(self) -> (&'static str, &'static str) {
        match self {
            Arch::X86 => ("lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu"),
            Arch::Arm => ("lib/ld-linux-aarch64.so.1", "lib"),
        }
    }

    /// The emulator with what every machine of this kind has.
    pub(super) fn qemu(self) -> Vec<&'static str> {
        match self {
            // One thread for all CPUs: with several, QEMU 7.2 runs half of an instruction that the
            // kernel replaces on another CPU, as it does when events are opened, and the kernel
            // panics (int3).
            Arch::X86 => vec!["qemu-system-x86_64", "-accel", "tcg,thread=single"],
            Arch::Arm => vec!["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"],
        }
    }

    /// The console that the emulator shows.
    pub(super) fn console(self) -> &'static str {
        match self {
            Arch::X86 => "ttyS0",
            Arch::Arm => "ttyAMA0",
        }
    }
}

/// One machine, and what is tried on it.
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) arch: Arch,
    pub(super) kernel: Wanted,
    pub(super) cpus: u32,
    pub(super) megabytes: u32,
    /// Further options of the emulator.
    pub(super) options: &'static [&'static str],
    pub(super) cases: Vec<Case>,
}

/// A machine of two CPUs. Its clock goes on with its instructions, by two nanoseconds each (two cycles of a counter of
/// 1 GHz): so no other work of the host makes its timers late, which would be time of its programs without a sample.
fn plain(name: &'static str, arch: Arch, kernel: Wanted, cases: Vec<Case>) -> Machine {
    let options = &["-icount", "shift=1"];
    Machine { name, arch, kernel, cpus: 2, megabytes: 768, options, cases }
}

/// The same with the host's clock, of which the emulator takes much for each sample: with `-icount`, Debian's 6.1 for
/// x86-64 does not boot on more than one CPU (tried with 2 and 8, 20 minutes each; 6.12 does).
fn on_host_clock(machine: Machine) -> Machine {
    Machine { options: &[], cases: cases::at_default_rate(machine.cases), ..machine }
}

/// The same where the kernel does not see that it is emulated. Where 7.2 saw it, one of two CPUs stood still for up to 0.9 s
/// in three of five boots while the other one went on, and records were lost: the session was on it. Looked at through the
/// emulator, it spun for a lock with interrupts off while the other one was in user mode. A kernel that sees a hypervisor
/// does not take its locks in turn. Without that flag nothing was lost in three runs of all cases.
fn with_fair_locks(machine: Machine) -> Machine {
    Machine { options: &["-icount", "shift=1", "-cpu", "qemu64,-hypervisor"], ..machine }
}

/// So many CPUs together have one thread of the host.
fn with_cpus(cpus: u32, machine: Machine) -> Machine {
    Machine { cpus, cases: cases::at_default_rate(machine.cases), ..machine }
}

/// All machines; `short` = three of them, with fewer cases.
pub(super) fn all(short: bool) -> Vec<Machine> {
    if short {
        return vec![
            on_host_clock(plain("x86-64-6.1", Arch::X86, OLD, cases::short())),
            plain("x86-64-6.12", Arch::X86, LATE, cases::short()),
            Machine {
                megabytes: 256,
                cpus: 1,
                ..plain("x86-64-small", Arch::X86, OLD, cases::short_small())
            },
        ];
    }
    vec![
        on_host_clock(plain("x86-64-6.1", Arch::X86, OLD, cases::all())),
        plain("x86-64-6.12", Arch::X86, LATE, cases::all()),
        with_fair_locks(plain("x86-64-unstable", Arch::X86, Wanted::Unstable, cases::all())),
        Machine {
            megabytes: 256,
            cpus: 1,
            ..plain("x86-64-small", Arch::X86, OLD, cases::small())
        },
        with_cpus(8, plain("x86-64-8-cpus", Arch::X86, LATE, cases::many_cpus())),
        Machine {
            megabytes: 2048,
            ..with_cpus(32, plain("x86-64-32-cpus", Arch::X86, LATE, cases::many_cpus()))
        },
        plain("arm64-6.1", Arch::Arm, OLD, cases::arm()),
        Machine { cpus: 1, ..plain("arm64-icount", Arch::Arm, OLD, cases::instructions()) },
    ]
}
