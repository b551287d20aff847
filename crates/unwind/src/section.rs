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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_brings_its_tables_and_its_entry_point() {
        let image = ImageFile::open(&std::env::current_exe().unwrap()).unwrap();
        let sections = UnwindSections::from(&image);
        let address = |section: &Option<Section>| section.as_ref().map(|section| section.address);
        let found = [&sections.eh_frame_hdr, &sections.eh_frame, &sections.text].map(address);
        let [header, table] =
            [".eh_frame_hdr", ".eh_frame"].map(|name| address(&image.section(name)));
        assert!(header.is_some() && table.is_some());
        assert_eq!(found, [header, table, address(&image.executable())]);
        assert_eq!(sections.entry, Some(image.entry()));
    }
}
