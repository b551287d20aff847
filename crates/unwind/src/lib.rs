//! Return addresses from registers, a copy of the stack and call frame information.
