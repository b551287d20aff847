//! Where frames of functions that are not of the program stand, such as methods in C of Ruby.
//!
//! They are known by the loop over instructions that calls them, and their native code has frames of its own
//! further in. Where that code starts is written down with their names, so each is put right outside of its
//! own native frame, in the place of the interpreter's function that called it; and between the loop and the
//! outermost of them the interpreter does nothing but call.
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
use crate::location::CodeLocation;
use crate::locator::Locator;
use crate::scripted::Scripted;

/// The native functions of a sample's stack.
pub(crate) struct NativeFunctions<'l> {
    pid: Pid,
    code: &'l Locator,
    interpreter: Option<ImageId>,
}

impl<'l> NativeFunctions<'l> {
    pub(crate) fn of(pid: Pid, code: &'l Locator, interpreter: Option<ImageId>) -> Self {
        NativeFunctions { pid, code, interpreter }
    }

    /// Places the frames of a loop, innermost first, each with where its native code starts, if it has some.
    /// The native frames further in than the loop, up to the next one, are those `inside`.
    pub(crate) fn place(
        &self,
        frames: impl DoubleEndedIterator<Item = (CodeLocation, Option<u64>)>,
        inside: Range<usize>,
        scripted: &mut Scripted,
    ) {
        let of_loop = inside.end;
        let (mut place, mut placed) = (of_loop, Vec::new());
        let mut called_by = of_loop;
        for (location, start) in frames.rev() {
            let found = start.and_then(|start| self.find(start, inside.start..called_by));
            if let Some(found) = found {
                let caller = found + 1;
                if caller < called_by && self.is_of_interpreter(caller) {
                    scripted.put(place, std::mem::take(&mut placed));
                    let is_first = called_by == of_loop;
                    if is_first && (caller..of_loop).all(|index| self.is_of_interpreter(index)) {
                        scripted.hidden.extend(caller + 1..of_loop);
                    }
                    place = caller;
                }
                called_by = found;
            }
            placed.push(location);
        }
        scripted.put(place, placed);
    }

    /// The outermost of native frames whose function starts there.
    fn find(&self, start: u64, within: Range<usize>) -> Option<usize> {
        let found = self.code.processes.find(self.pid, ProcessAddress(start))?;
        let offset = found.mapping.to_file_offset(found.address);
        let image = found.mapping.image;
        let wanted = self.function_start(CodeLocation::Image(image, offset))?;
        let locations = self.code.located().0;
        let is_it = |index: &usize| {
            let location = locations.get(*index).copied();
            location.and_then(|location| self.function_start(location)) == Some(wanted)
        };
        within.rev().find(is_it)
    }

    fn function_start(&self, location: CodeLocation) -> Option<(ImageId, ImageAddress)> {
        let CodeLocation::Image(id, offset) = location else { return None };
        let OpenImage::File(file, _) = self.code.images.get(id)? else { return None };
        Some((id, file.function_start(file.to_image_address(offset)?)?))
    }

    fn is_of_interpreter(&self, index: usize) -> bool {
        let location = self.code.located().0.get(index);
        location.is_some_and(|at| image_address(*at, self.code, self.interpreter).is_some())
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
