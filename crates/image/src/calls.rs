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

    /// Where a function has its code: its own range first, and then the parts that the compiler put elsewhere (`.cold`
    /// of GCC and LLVM), which have no name in a stripped file. A part is what the function jumps into, and what jumps
    /// into the middle of the function: no other function does. Empty where there is no function.
    ///
    /// Which of them is executed more often does not follow from the names: of CPython 3.14 in Debian nearly all of the
    /// loop over instructions is in the second part.
    pub fn parts_of(&self, function: ImageAddress) -> Vec<Range<ImageAddress>> {
        let Some(own) = self.function_range(function) else { return Vec::new() };
        let mut parts = vec![own.clone()];
        for target in self.jumps_of(&own) {
            let Some(part) = self.function_range(ImageAddress(target)) else { continue };
            let leads_back = |part: &Range<ImageAddress>| {
                let mut jumps = self.jumps_of(part).into_iter();
                jumps.any(|to| own.start.0 < to && to < own.end.0)
            };
            if !parts.contains(&part) && leads_back(&part) {
                parts.push(part);
            }
        }
        parts
    }

    /// Where the code of a function jumps to outside of it, each place once.
    fn jumps_of(&self, function: &Range<ImageAddress>) -> Vec<u64> {
        let (start, end) = (function.start.0, function.end.0);
        let len = usize::try_from((end - start).min(MOST_CODE)).unwrap_or(0);
        let code = self.initial_bytes(function.start, len).unwrap_or_default();
        let mut found = jumps(&code, start, cfg!(target_arch = "aarch64"));
        found.retain(|target| !(start..end).contains(target));
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Where the code may jump to: of x86-64 by `jmp` and by conditional jumps with a distance of four bytes.
fn jumps(code: &[u8], start: u64, is_arm64: bool) -> Vec<u64> {
    if is_arm64 {
        return targets(code, start, true);
    }
    let distances = targets_of_x86_64(code, start);
    let is_jump = |at: usize| match (at.checked_sub(2).and_then(|at| code.get(at)), at) {
        (_, 0) => false,
        (before, at) => match code.get(at - 1) {
            Some(0xe9) => true,
            Some(0x80..=0x8f) => before == Some(&0x0f),
            _ => false,
        },
    };
    distances.filter(|(at, _)| is_jump(*at)).map(|(_, target)| target).collect()
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
    targets_of_x86_64(code, start).map(|(_, target)| target).collect()
}

/// Where the distances in code lead to that are near enough, and at which byte of it each stands.
fn targets_of_x86_64(code: &[u8], start: u64) -> impl Iterator<Item = (usize, u64)> {
    let distances = code.windows(4).zip(start..).enumerate().map(|(at, (bytes, address))| {
        let distance = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        (at, distance, address.wrapping_add(4).wrapping_add_signed(distance.into()))
    });
    let is_near = |distance: i32| u64::from(distance.unsigned_abs()) < FARTHEST;
    distances.filter(move |(_, distance, _)| is_near(*distance)).map(|(at, _, target)| (at, target))
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

    #[test]
    fn jumps_are_told_from_calls() {
        // call +16; jmp -11; jne +32; and a distance behind another byte than 0x0f
        let code = [
            0xe8, 16, 0, 0, 0, 0xe9, 0xf5, 0xff, 0xff, 0xff, 0x0f, 0x85, 32, 0, 0, 0, 0x90, 0x84,
            1, 0, 0, 0,
        ];
        assert_eq!(jumps(&code, 0x1000, false), [0xfff, 0x1030]);
        for len in 0..code.len() {
            jumps(&code[..len], 0x1000, false);
        }
    }
}
