//! The parts of an image that the unwinder reads.

use std::sync::Arc;

use flame_image::{ImageFile, Section};
use flame_pclntab::GoTable;
use flame_profile::ImageAddress;

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

impl From<&ImageFile> for UnwindSections {
    fn from(image: &ImageFile) -> UnwindSections {
        UnwindSections {
            eh_frame_hdr: image.section(".eh_frame_hdr"),
            eh_frame: image.section(".eh_frame"),
            debug_frame: image.section(".debug_frame"),
            go_table: image.go_table().cloned(),
            text: image.executable(),
            entry: Some(image.entry()),
        }
    }
}
