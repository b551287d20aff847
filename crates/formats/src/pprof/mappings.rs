//! Images as mappings, and addresses in them, both ways.
//!
//! A written mapping spans the whole address space and its addresses are image addresses; the
//! range that the image really had stands in a field of our own. What has no image (the kernel,
//! JIT code, marks) gets a mapping that is named after its kind and lacks that field.

use std::collections::HashSet;

use flame_profile::{
    BuildId, FileOffset, FrameKind, Image, ImageAddress, Location, ProcessAddress, Profile,
};

use super::kind;
use super::proto;
use super::write::widen;

/// How many bytes of an image's name are shown for an address without a name: what a file name
/// may have on Linux.
const MAX_IMAGE_NAME: usize = 255;

/// The mappings of a file: the images, then the kinds of code without one that there is.
///
/// Ids count up from 1 without holes: some readers take them for positions.
#[derive(Debug)]
pub(super) struct Mappings {
    /// In the order of their ids.
    pub(super) details: Vec<Details>,
    images: usize,
    /// The kinds that have a mapping, in the order of their ids.
    pub(super) kinds: Vec<FrameKind>,
}

impl Mappings {
    /// Those that the locations of a profile are in, and all its images.
    pub(super) fn of(profile: &Profile) -> Mappings {
        let without_image = profile.locations().filter_map(|location| kind_of(profile, location));
        let used: HashSet<FrameKind> = without_image.collect();
        let kinds: Vec<FrameKind> =
            kind::WITH_MAPPING.into_iter().filter(|kind| used.contains(kind)).collect();
        let images = profile.images().len();
        let details = vec![Details::default(); images + kinds.len()];
        let mut mappings = Mappings { details, images, kinds };
        for location in profile.locations() {
            let at = mappings.id_of(profile, location).checked_sub(1);
            if let Some(details) = at.and_then(|at| mappings.details.get_mut(at)) {
                details.add(profile, location);
            }
        }
        mappings
    }

    /// The id of a location's mapping; 0 = none.
    pub(super) fn id_of(&self, profile: &Profile, location: &Location) -> usize {
        if let Some(image) = image_index(profile, location) {
            return image + 1;
        }
        let kind = kind_of(profile, location);
        let own = kind.and_then(|kind| self.kinds.iter().position(|known| *known == kind));
        own.map_or(0, |own| self.images + own + 1)
    }
}

fn image_index(profile: &Profile, location: &Location) -> Option<usize> {
    location.image.map(|image| image.index()).filter(|index| *index < profile.images().len())
}

/// The kind of a location that is in no image.
fn kind_of(profile: &Profile, location: &Location) -> Option<FrameKind> {
    let outermost = location.frames.last().filter(|_| image_index(profile, location).is_none());
    outermost.map(|frame| profile.frame(*frame).kind)
}

/// What is known about the addresses in a mapping.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Details {
    functions: bool,
    files: bool,
    lines: bool,
    inlined: bool,
}

impl Details {
    /// Adds what a location of the mapping has.
    pub(super) fn add(&mut self, profile: &Profile, location: &Location) {
        self.functions = true;
        self.inlined |= location.frames.len() > 1;
        for frame in &location.frames {
            let frame = profile.frame(*frame);
            self.files |= frame.file.is_some();
            self.lines |= frame.line.is_some();
        }
    }

    /// A mapping in which every address is taken as it stands.
    pub(super) fn mapping(&self, id: usize, file: i64) -> proto::Mapping {
        proto::Mapping {
            id: widen(id),
            limit: u64::MAX,
            file,
            has_functions: self.functions,
            has_filenames: self.files,
            has_line_numbers: self.lines,
            has_inline_frames: self.inlined,
            ..proto::Mapping::default()
        }
    }
}

/// Where an image was really mapped.
pub(super) fn range_of(image: &Image) -> proto::Range {
    let (ProcessAddress(start), ProcessAddress(end)) = (image.start, image.end);
    let FileOffset(offset) = image.offset;
    proto::Range { start, end, offset }
}

/// The image of a mapping; in files of other tools the mapping itself says where it was.
pub(super) fn image_of(mapping: &proto::Mapping, path: String, build_id: &str) -> Image {
    let proto::Mapping { start, limit: end, offset, .. } = *mapping;
    let range = mapping.range.unwrap_or(proto::Range { start, end, offset });
    Image {
        path,
        build_id: build_id_of(build_id),
        start: ProcessAddress(range.start),
        end: ProcessAddress(range.end),
        offset: FileOffset(range.offset),
    }
}

/// Whether the mapping of that file name stands for "no image" in a file that flame wrote.
pub(super) fn is_no_image(mapping: &proto::Mapping, file: &str) -> bool {
    let is_whole_space = mapping.start == 0 && mapping.offset == 0 && mapping.limit == u64::MAX;
    is_whole_space
        && mapping.range.is_none()
        && mapping.build_id == 0
        && kind::is_mapping_name(file)
}

/// The address in the image. Files of other tools have process addresses; their place in the file
/// is as near to an image address as one comes without the image at hand.
pub(super) fn image_address(
    location: &proto::Location,
    mapping: Option<&proto::Mapping>,
) -> ImageAddress {
    let address = location.address;
    let within = mapping.filter(|mapping| (mapping.start..mapping.limit).contains(&address));
    ImageAddress(
        within.map_or(address, |mapping| (address - mapping.start).saturating_add(mapping.offset)),
    )
}

/// The file name of a path, short enough to be shown.
pub(super) fn image_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let end = (0..=MAX_IMAGE_NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name.get(..end).unwrap_or(name)
}

/// The bytes of a build id in hexadecimal digits; other build ids (Go's) are kept as text.
fn build_id_of(text: &str) -> Option<BuildId> {
    let digits = text.as_bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    BuildId::from_bytes(bytes.as_deref().unwrap_or(digits))
}
