//! Typed events from the records of the perf_event ABI, in time order, and address spaces.
