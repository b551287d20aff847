//! Names for addresses: ELF, DWARF, kallsyms, perf maps and the vdso.
