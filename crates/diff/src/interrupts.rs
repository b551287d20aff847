//! What interrupts brought into a profile: work of the machine that hits whoever is running.

use flame_profile::{FrameKind, Label};

use crate::tree::{DiffNode, Weights};

/// How the kernel's functions are called through which interrupts come in, or what is left of the
/// name behind these starts. Work that a program asked for (system calls, faults, softirqs that its
/// own calls run) goes through others.
const ENTRIES: [&str; 20] = [
    "apic_timer_interrupt",
    "asm_common_interrupt",
    "asm_exc_nmi",
    "asm_sysvec_",
    "common_interrupt",
    "call_function_",
    "do_IRQ",
    "el0_irq",
    "el0t_64_irq",
    "el1_irq",
    "el1h_64_irq",
    "gic_handle_irq",
    "handle_arch_irq",
    "irq_exit",
    "__irq_exit",
    "__irq_svc",
    "__irq_usr",
    "ret_from_intr",
    "reschedule_interrupt",
    "sysvec_",
];

fn is_entry(label: &Label) -> bool {
    label.kind == FrameKind::Kernel && ENTRIES.iter().any(|entry| label.name.starts_with(entry))
}

/// What came with interrupts.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    /// Whether each node is at or below an interrupt's entry; empty where there is none.
    pub(crate) nodes: Vec<bool>,
    /// Whether each label stands nowhere else.
    pub(crate) labels: Vec<bool>,
    /// All of it, before and after.
    pub(crate) weights: [Weights; 2],
}

impl Interrupts {
    pub(crate) fn of(labels: &[Label], nodes: &[DiffNode]) -> Interrupts {
        let is_entry: Vec<bool> = labels.iter().map(is_entry).collect();
        if !is_entry.contains(&true) {
            let labels = vec![false; labels.len()];
            return Interrupts { labels, ..Interrupts::default() };
        }
        let mut found = Interrupts {
            nodes: vec![false; nodes.len()],
            labels: vec![true; labels.len()],
            weights: Default::default(),
        };
        for (index, node) in nodes.iter().enumerate() {
            let is_below = index > 0 && found.nodes[node.parent.index()];
            let is_here = is_entry[node.label.index()];
            found.nodes[index] = is_below || is_here;
            found.labels[node.label.index()] &= is_below || is_here;
            if is_here && !is_below {
                found.weights[0].add(node.before);
                found.weights[1].add(node.after);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::Weight;

    use crate::test_runs::run;
    use crate::{DiffConfig, DiffTree};

    #[test]
    fn what_hangs_below_an_entry_came_with_an_interrupt() {
        let before =
            run("p;main 900\np;main;asm_sysvec_timer_[k];tick_[k] 3\np;main;read_[k] 97\n");
        let after = "p;main 500\np;main;asm_sysvec_timer_[k];tick_[k] 300\np;main;read_[k] 97\n\
                     p;main;asm_sysvec_timer_[k];read_[k] 3\n";
        let tree = DiffTree::new(&[before], &[run(after)], &DiffConfig::default()).unwrap();
        let found = |name: &str| {
            let labels = tree.labels();
            let function = tree.functions().iter().find(|f| labels[f.label.index()].name == name);
            function.map(|f| (f.self_evidence.is_real(), f.total_evidence.is_real()))
        };
        // A function of the program's own calls and of interrupts is the program's.
        assert_eq!(found("main"), Some((true, false)));
        assert_eq!(found("tick"), Some((false, false)));
        assert_eq!(found("asm_sysvec_timer"), Some((false, false)));
        let weights = tree.interrupts().map(|weights| weights.total);
        assert_eq!(weights, [Weight(3), Weight(303)]);
    }
}
