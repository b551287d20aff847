//! Live events from the kernel: perf_event descriptors, rings, launched programs.
