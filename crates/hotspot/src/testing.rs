//! Memory of a VM, for tests.
