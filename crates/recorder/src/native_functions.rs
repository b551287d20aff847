//! Where frames of functions that are not of the program stand, such as methods in C of Ruby.
//!
//! They are known by the loop over instructions that calls them, and their native code has frames of its own
//! further in. Where that code starts is written down with their names, so each is put right outside of its
//! own native frame, in the place of the interpreter's function that called it. What does nothing but call
//! between the loop and the outermost of them is left out; a function that does work there stays.
//!
//! ```text
//!   vm_exec_core                      Object#sort
//!   vm_call_cfunc                     -
//!   vm_call_cfunc_with_frame          Enumerable#sort_by ([C])
//!   enum_sort_by, rb_call, call0      the same
//!   call0_cfunc                       Array#each ([C])
//!   rb_ary_each                       the same
//! ```

use std::ops::Range;

use flame_profile::{ImageAddress, ImageId, Pid, ProcessAddress};

use crate::images::OpenImage;
use crate::interpreter::Interpreter;
use crate::location::CodeLocation;
use crate::locator::Locator;
use crate::scripted::Scripted;

/// What the names of Ruby's functions begin with that carry out instructions and calls.
const CALLS: [&[u8]; 3] = [b"vm_", b"call_cfunc", b"ractor_safe_call_cfunc"];

/// The image and address that a function starts at.
type Start = (ImageId, ImageAddress);

/// The native functions of a sample's stack.
pub(crate) struct NativeFunctions<'l> {
    pub(crate) pid: Pid,
    pub(crate) code: &'l Locator,
    pub(crate) image: Option<ImageId>,
    pub(crate) interpreter: &'l Interpreter,
}

impl NativeFunctions<'_> {
    /// Places the frames of a loop, innermost first, each with where its native code starts, if it has some.
    /// The native frames further in than the loop, up to the next one, are those `inside`.
    pub(crate) fn place(
        &self,
        frames: &[(CodeLocation, Option<u64>)],
        inside: Range<usize>,
        scripted: &mut Scripted,
    ) {
        let of_loop = inside.end;
        let (mut place, mut placed) = (of_loop, Vec::new());
        let mut called_by = of_loop;
        let starts = match frames.iter().any(|(_, start)| start.is_some()) {
            true => self.starts(inside.clone()),
            false => Vec::new(),
        };
        for (location, start) in frames.iter().rev() {
            let found = start.and_then(|start| self.start_of(start)).and_then(|wanted| {
                starts
                    .get(..called_by - inside.start)?
                    .iter()
                    .rposition(|start| *start == Some(wanted))
            });
            if let Some(found) = found {
                let found = inside.start + found;
                let caller = found + 1;
                if caller < called_by && self.only_calls(caller) {
                    scripted.put(place, std::mem::take(&mut placed));
                    let is_first = called_by == of_loop;
                    if is_first && (caller..of_loop).all(|index| self.only_calls(index)) {
                        scripted.hidden.extend(caller + 1..of_loop);
                    }
                    place = caller;
                }
                called_by = found;
            }
            placed.push(*location);
        }
        scripted.put(place, placed);
    }

    /// Where the functions of native frames start.
    fn starts(&self, of: Range<usize>) -> Vec<Option<Start>> {
        let locations = self.code.located().0.get(of).unwrap_or_default();
        locations.iter().map(|location| self.function_start(*location)).collect()
    }

    fn start_of(&self, address: u64) -> Option<Start> {
        let found = self.code.processes.find(self.pid, ProcessAddress(address))?;
        let offset = found.mapping.to_file_offset(found.address);
        self.function_start(CodeLocation::Image(found.mapping.image, offset))
    }

    fn function_start(&self, location: CodeLocation) -> Option<Start> {
        let CodeLocation::Image(id, offset) = location else { return None };
        let OpenImage::File(file, _) = self.code.images.get(id)? else { return None };
        Some((id, file.function_start(file.to_image_address(offset)?)?))
    }

    /// Whether a native frame is one of an interpreter's function that does nothing but call: one that is known to,
    /// is named so, or has no name, as all that are not exported where the library is stripped.
    fn only_calls(&self, index: usize) -> bool {
        let only_calls = || {
            let location = *self.code.located().0.get(index)?;
            let address = image_address(location, self.code, self.image)?;
            let OpenImage::File(file, _) = self.code.images.get(self.image?)? else { return None };
            let carries_out = match file.symbols().lookup(address) {
                Some(symbol) => CALLS.iter().any(|start| symbol.name.starts_with(start)),
                None => true,
            };
            Some(carries_out || self.interpreter.only_calls(address, index == 0))
        };
        only_calls().unwrap_or(false)
    }
}

/// Where in an interpreter's image a location is.
pub(crate) fn image_address(
    location: CodeLocation,
    code: &Locator,
    interpreter: Option<ImageId>,
) -> Option<ImageAddress> {
    let CodeLocation::Image(id, offset) = location else { return None };
    match code.images.get(id)? {
        OpenImage::File(file, _) if Some(id) == interpreter => file.to_image_address(offset),
        _ => None,
    }
}
