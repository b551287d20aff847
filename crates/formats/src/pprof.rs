//! pprof files (`.pb.gz`): a `Profile` into a gzipped `perftools.profiles.Profile` and back.
//!
//! What flame writes follows the rules that `go tool pprof` checks, and reading it back gives an
//! equal profile. Where pprof has no place for something, it stands in fields of our own that
//! other tools skip (`proto`) or in comments (`facts`). `docs/formats.md` has the whole mapping.
//!
//! Addresses in a written file are image addresses, since an image may be mapped elsewhere in
//! each process. The mappings therefore span the whole address space, which pprof takes to mean
//! "addresses need no adjustment" (`GetBase` in its `elfexec.go`); the range that the image really
//! had is kept in a field of our own.
//!
//! Sources: `proto/profile.proto`, `profile/encode.go` and `Profile.CheckValid` of google/pprof.

mod error;
mod evidence;
mod facts;
mod inflate;
mod kind;
mod mappings;
mod proto;
mod read;
mod roots;
mod tables;
mod threads;
mod values;
mod wire;
mod write;

pub use error::PprofError;
pub use inflate::MAX_INFLATED;
pub(crate) use read::{Counted, read_counted, say_negative};
pub use read::{read_pprof, read_pprof_by};
pub(crate) use threads::{Role, role_of};
pub(crate) use wire::check_start;
pub use write::write_pprof;
