//! The parts of an image that the unwinder reads.

use std::sync::Arc;

use flame_pclntab::GoTable;
use flame_profile::{ImageAddress, SharedBytes};

/// Bytes of an image with the address that they have in it.
#[derive(Clone, Debug)]
pub struct Section {
    /// Where the first byte is.
    pub address: ImageAddress,
    /// The bytes, decompressed where the file compresses them.
    pub bytes: SharedBytes,
}

impl Section {
    /// The bytes from `address` on, with those before it; `None` outside the section.
    pub(crate) fn split_at(&self, address: ImageAddress) -> Option<(&[u8], &[u8])> {
        let offset = usize::try_from(address.0.checked_sub(self.address.0)?).ok()?;
        self.bytes.split_at_checked(offset)
    }
}

/// What an image brings along for unwinding; whatever it lacks is `None`.
#[derive(Clone, Debug, Default)]
pub struct UnwindSections {
    /// `.eh_frame_hdr`: the sorted table into `.eh_frame`, without which one is built.
    pub eh_frame_hdr: Option<Section>,
    /// `.eh_frame`. Where only program headers are left, the bytes from the address that
    /// `.eh_frame_hdr` names to the end of the segment do as well.
    pub eh_frame: Option<Section>,
    /// `.debug_frame`, asked where neither `.eh_frame` nor Go's table covers an address.
    pub debug_frame: Option<Section>,
    /// `.gopclntab`, asked where `.eh_frame` does not cover an address.
    pub go_table: Option<Arc<GoTable>>,
    /// The executable segment, to see calls and prologues where no table covers an address.
    pub text: Option<Section>,
    /// The entry point (`e_entry`), where the first thread's stack begins even if no table says so.
    pub entry: Option<ImageAddress>,
}
