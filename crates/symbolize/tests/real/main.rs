//! Lookups in real programs and libraries.

// The modules are marked as test code so that the lints treat their helpers as such.
#[cfg(test)]
mod binutils;
#[cfg(test)]
mod go;
