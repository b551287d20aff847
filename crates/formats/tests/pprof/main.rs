//! pprof files: what is written, what is read back, and what other tools make of them.

#![cfg(test)]

mod describe;
mod foreign;
mod round_trip;
mod samples;
mod tables;
mod tools;
mod wire;
