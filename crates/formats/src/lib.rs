//! Profile files of other tools, read and written.
