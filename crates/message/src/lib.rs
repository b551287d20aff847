//! Messages to people as text: what happened, why, and what to try, with the names, amounts and colours
//! in them.
//!
//! It prints nothing: whoever has a terminal does. Names are hostile input everywhere: see [`clean_name`].
//!
//! ```
//! use flame_message::{Failure, Paint};
//!
//! let failure = Failure::new("cannot read perf.data").why("permission denied");
//! let text = failure.or_again_with("sudo").text(Paint(false), "flame fold perf.data");
//! let lines = [
//!     "error: cannot read perf.data",
//!     "  why: permission denied",
//!     "  try: sudo flame fold perf.data",
//! ];
//! assert_eq!(text, lines.join("\n") + "\n");
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod amount;
mod message;
mod name;
mod paint;
mod words;

pub use amount::{
    ValueScale, counted, format_change, format_share, group_thousands, push_digits, push_grouped,
    push_share,
};
pub use message::{Failure, Note, printable};
pub use name::{clean_name, shortened};
pub use paint::Paint;
pub use words::{quoted, reason};
