//! Who wakes threads: what a thread does when it wakes another one, told apart from what interrupts do
//! while it has the CPU.

use std::fs::File;
use std::io;
use std::path::Path;

use flame_events::{Interrupt, SampleEvent};
use flame_profile::ProcessAddress;
use flame_symbolize::KernelSymbols;
use rustc_hash::FxHashMap;

use crate::config::{KALLSYMS, Waits, Wakers};

/// Functions that the kernel enters interrupts by, or handles behind them what they left for later: what
/// called them is not a caller. `arch/x86/include/asm/idtentry.h`, `arch/arm64/kernel/entry.S` and
/// `kernel/softirq.c` of Linux.
const ENTRIES: &[&str] = &[
    "asm_common_interrupt",
    "el0_interrupt",
    "el0_irq",
    "el0t_64_irq",
    "el1_interrupt",
    "el1_irq",
    "el1h_64_irq",
    "irq_exit",
    "irq_exit_rcu",
];

/// How the others of x86-64 are called.
const ENTRY_PREFIX: &str = "asm_sysvec_";

/// Looks at samples of threads that wake others.
#[derive(Debug)]
pub(crate) struct Wakings {
    /// Whether nothing else is shown.
    pub(crate) are_alone: bool,
    kernel: KernelSymbols,
    is_entry: FxHashMap<ProcessAddress, bool>,
}

impl Wakings {
    /// `None` where it is not asked who wakes threads. Reads the kernel's symbols; without them some
    /// interrupts are taken for what threads do.
    pub(crate) fn new(waits: Waits, kernel: fn() -> io::Result<File>) -> Option<Wakings> {
        let are_alone = match waits.wakers {
            Wakers::Unknown => return None,
            wakers => wakers == Wakers::Alone,
        };
        let kernel = KernelSymbols::read(kernel(), Path::new(KALLSYMS)).unwrap_or_default();
        Some(Wakings { are_alone, kernel, is_entry: FxHashMap::default() })
    }

    /// How many of a sample's innermost kernel frames are an interrupt's, which came while the thread
    /// did something else; `None` where the thread itself wakes another one.
    pub(crate) fn interrupt_depth(&mut self, sample: &SampleEvent<'_>) -> Option<usize> {
        let interrupt = sample.interrupt?;
        let chain = &sample.kernel_chain;
        // Return addresses are behind their calls.
        let call = |address: ProcessAddress| ProcessAddress(address.0.saturating_sub(1));
        let entry = chain.iter().position(|address| self.is_entry(call(address)));
        match (interrupt, entry) {
            (_, Some(entry)) => Some(entry + 1),
            (Interrupt::Hard, None) => Some(chain.len()),
            // A thread that sends something handles what it left for later itself.
            (Interrupt::Soft, None) => None,
        }
    }

    fn is_entry(&mut self, address: ProcessAddress) -> bool {
        let kernel = &self.kernel;
        *self.is_entry.entry(address).or_insert_with(|| {
            let found = kernel.lookup(address);
            found.is_some_and(|(name, _)| name.starts_with(ENTRY_PREFIX) || ENTRIES.contains(&name))
        })
    }
}

#[cfg(test)]
mod tests {
    use flame_events::Addresses;
    use flame_profile::{Pid, Tid};

    use super::*;

    const SYMBOLS: &str = "1000 T try_to_wake_up\n2000 T asm_sysvec_apic_timer_interrupt\n\
                           3000 T do_syscall_64\n4000 T irq_exit_rcu\n5000 T end\n";

    fn depth(interrupt: Option<Interrupt>, chain: &[u64]) -> Option<usize> {
        let kernel = KernelSymbols::parse(SYMBOLS.as_bytes());
        let mut all = Wakings { are_alone: true, kernel, is_entry: FxHashMap::default() };
        all.interrupt_depth(&SampleEvent {
            event: 0,
            pid: Pid(1),
            tid: Tid(1),
            cpu: None,
            period: 1,
            tracepoint: None,
            interrupt,
            ip: ProcessAddress(0),
            kernel_chain: chain.iter().map(|address| ProcessAddress(*address)).collect(),
            user_chain: Addresses::default(),
            user_registers: None,
            user_stack: None,
        })
    }

    #[test]
    fn what_an_interrupt_came_upon_is_no_caller_of_it() {
        assert_eq!(depth(None, &[0x1004, 0x3004]), None);
        assert_eq!(depth(Some(Interrupt::Hard), &[0x1004, 0x2004, 0x3004]), Some(2));
        assert_eq!(depth(Some(Interrupt::Hard), &[0x1004, 0x3004]), Some(2));
        assert_eq!(depth(Some(Interrupt::Soft), &[0x1004, 0x4004, 0x3004]), Some(2));
        assert_eq!(depth(Some(Interrupt::Soft), &[0x1004, 0x3004]), None);
    }
}
