//! Which functions the code of a function has the addresses of, in files that say no names: to call them,
//! or to have them called.

use std::ops::Range;

use flame_profile::ImageAddress;

use crate::image::ImageFile;

/// The longest function that is looked through.
const MOST_CODE: u64 = 256 * 1024;

/// How far away functions may be.
const FARTHEST: u64 = 64 << 20;

impl ImageFile {
    /// The function at an address and those that its code leads to, each from its start to its end, in the
    /// order of the code. What leads to no start of a function is passed over. Nothing on machines other
    /// than x86-64 and arm64.
    pub fn leads_to(
        &self,
        function: ImageAddress,
    ) -> Option<(Range<ImageAddress>, Vec<Range<ImageAddress>>)> {
        let own = self.function_range(function)?;
        let len = (own.end.0 - own.start.0).min(MOST_CODE);
        let code = self.initial_bytes(own.start, usize::try_from(len).ok()?)?;
        let mut found: Vec<Range<ImageAddress>> = Vec::new();
        for target in targets(&code, own.start.0, cfg!(target_arch = "aarch64")) {
            let range = self.function_range(ImageAddress(target));
            let range = range.filter(|range| range.start.0 == target && *range != own);
            found.extend(range.filter(|range| !found.contains(range)));
        }
        Some((own, found))
    }
}

/// Where the code may lead: of arm64 by `bl` and `b`, of x86-64 by a distance of four bytes that ends an
/// instruction, whichever that is.
fn targets(code: &[u8], start: u64, is_arm64: bool) -> Vec<u64> {
    if is_arm64 {
        let words = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        // 26 bits, in words.
        let branches = words.zip((start..).step_by(4)).filter(|(word, _)| word >> 26 & 0x1f == 5);
        let to = |(word, at): (u32, u64)| {
            at.wrapping_add_signed(i64::from((word << 6).cast_signed() >> 6) * 4)
        };
        return branches.map(to).collect();
    }
    let distances = code.windows(4).zip(start..).map(|(bytes, at)| {
        let distance = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        (distance, at.wrapping_add(4).wrapping_add_signed(distance.into()))
    });
    let is_near = |distance: i32| u64::from(distance.unsigned_abs()) < FARTHEST;
    distances.filter(|(distance, _)| is_near(*distance)).map(|(_, target)| target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_leads_forth_and_back() {
        // call +16; nop; jmp -11; lea rsi, [rip + 32]
        let code =
            [0xe8, 16, 0, 0, 0, 0x90, 0xe9, 0xf5, 0xff, 0xff, 0xff, 0x48, 0x8d, 0x35, 32, 0, 0, 0];
        let found = targets(&code, 0x1000, false);
        assert!([0x1015, 0x1000, 0x1032].iter().all(|target| found.contains(target)), "{found:x?}");
        // bl +8; nop; b -8
        let code = [2, 0, 0, 0x94, 0x1f, 0x20, 3, 0xd5, 0xfe, 0xff, 0xff, 0x17];
        assert_eq!(targets(&code, 0x1000, true), [0x1008, 0x1000]);
    }
}
