//! Files that a user named: what stands at a path, and a file that takes its place as a whole.
//!
//! Others may write to the directories on the way. For root they must not lead to a file that is
//! neither root's nor the user's who called sudo, whom [`OwnFiles`] knows.
//!
//! ```
//! use flame_own_files::OwnFiles;
//!
//! let path = std::env::temp_dir().join(format!("flame-example-{}.txt", std::process::id()));
//! let files = OwnFiles::default();
//! assert_eq!(files.replace(&path, &mut |out| out.write_all(b"whole"))?.len, 5);
//! assert_eq!(files.read(&path)?, b"whole");
//! std::fs::remove_file(path)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod find;
mod input;
mod place;

pub use find::{Found, OwnFiles, Place, is_same};
pub use input::is_refused;
pub use place::{WriteWith, Written, buffered};
