//! The walk over a whole stack.

use std::mem;

use flame_profile::{ProcessAddress, StackEnd};
use gimli::UnwindContext;

use crate::arch::{Architecture, Facts};
use crate::code::{Code, FindCode, FrameAddress, Left, ModuleId, RuntimeFrame};
use crate::compile::Compiled;
use crate::fallback::{BareFrame, LostStep};
use crate::go_frames;
use crate::module::Module;
use crate::registers::Registers;
use crate::row::{Row, ShortRow};
use crate::row_cache::{RowCache, RowKey};
use crate::section::UnwindSections;
use crate::stack_copy::StackCopy;
use crate::step::{Frame, Step};

/// The limit of frames to give to [`Unwinder::unwind`] without a reason for another: 64 KiB, the
/// most that the kernel copies, hold at most 4096 frames of two words, the smallest usual ones.
pub const DEFAULT_FRAME_LIMIT: usize = 4096;

/// Turns what the kernel recorded of a user stack into addresses.
pub trait Unwinder {
    /// Walks one stack. `out` is cleared first and gets the frames innermost first, the sampled
    /// instruction at the front and at most `limit` in all. The result says why the walk ended;
    /// the frames before that are good in any case. `find` says what the addresses of the process
    /// point to at the time of the sample.
    ///
    /// [`StackEnd::NotRecorded`] if the program counter is not known, and if not a single byte of
    /// the stack was copied and the sampled function needs one.
    fn unwind(
        &mut self,
        find: &mut dyn FindCode,
        registers: &Registers,
        stack: &StackCopy<'_>,
        limit: usize,
        out: &mut Vec<FrameAddress>,
    ) -> StackEnd;
}

/// Walks stacks by call frame information, and by frame pointers where there is none.
///
/// One unwinder serves all processes of an architecture: modules are images, wherever and however
/// often they are mapped.
#[derive(Debug)]
pub struct CfiUnwinder {
    architecture: Architecture,
    modules: Vec<Module>,
    rows: RowCache,
    context: UnwindContext<usize>,
}

impl CfiUnwinder {
    /// An unwinder that knows no module yet.
    pub fn new(architecture: Architecture) -> CfiUnwinder {
        CfiUnwinder {
            architecture,
            modules: Vec::new(),
            rows: RowCache::default(),
            context: UnwindContext::new(),
        }
    }

    /// Makes an image known, once however often it is mapped. Costs next to nothing: tables are
    /// searched where they lie, and an index for an image that lacks one is built at first use.
    pub fn add_module(&mut self, sections: UnwindSections) -> ModuleId {
        // An image takes far more than a byte, so memory ends before the numbers do.
        let id = ModuleId(u32::try_from(self.modules.len()).unwrap_or(u32::MAX));
        self.modules.push(Module::new(self.architecture, sections));
        id
    }

    /// Whether a module is a program of Go.
    pub fn is_of_go(&self, module: ModuleId) -> bool {
        self.modules.get(module.index()).is_some_and(|module| module.go_table().is_some())
    }

    /// As [`Unwinder::unwind`]; `watch` gets the registers of each frame, as far as they are known
    /// there, with its position in `out`.
    pub fn unwind_watched(
        &mut self,
        find: &mut dyn FindCode,
        (registers, stack): (&Registers, &StackCopy<'_>),
        limit: usize,
        out: &mut Vec<FrameAddress>,
        watch: &mut dyn FnMut(usize, &Registers),
    ) -> StackEnd {
        out.clear();
        let mut registers = *registers;
        let Some(pc) = registers.get(self.facts().program_counter) else {
            return StackEnd::NotRecorded;
        };
        let mut frames = Frames { limit, out, watch };
        let end = self.walk(find, ProcessAddress(pc), &mut registers, stack, &mut frames);
        // Of a task that is just replacing its memory (execve) the kernel copies no byte.
        if stack.is_empty() && end.is_truncated() { StackEnd::NotRecorded } else { end }
    }

    fn facts(&self) -> &'static Facts {
        self.architecture.facts()
    }

    /// Adds frames from the one at `pc` on.
    fn walk(
        &mut self,
        find: &mut dyn FindCode,
        pc: ProcessAddress,
        registers: &mut Registers,
        stack: &StackCopy<'_>,
        frames: &mut Frames<'_>,
    ) -> StackEnd {
        let mut stack = *stack;
        let mut guessed = false;
        // Once in a stack: who has made a frame in the usual way has saved the frame pointer, too.
        let mut may_guess = registers.get(self.facts().frame_pointer).is_none();
        let mut place = self.place(find, FrameAddress::Instruction(pc));
        loop {
            if frames.out.len() >= frames.limit {
                return StackEnd::FrameLimit;
            }
            (frames.watch)(frames.out.len(), registers);
            frames.out.push(place.address);
            let step = match place.code {
                Code::Runtime => {
                    let facts = self.facts();
                    leave_runtime(find, &place, registers, (facts, &stack, frames.out.len()))
                }
                _ => None,
            };
            let step = step.unwrap_or_else(|| self.step(find, &place, registers, &stack));
            let step = match (step, place.row) {
                (Step::End(StackEnd::BadValue), Row::Short(row)) if mem::take(&mut may_guess) => {
                    self.leave_without_frame_pointer(find, (&place, &row), registers, &stack)
                }
                _ => step,
            };
            let caller = match step {
                Step::End(StackEnd::Root) if guessed => return StackEnd::Guessed,
                Step::End(end) => return end,
                Step::Caller(caller) => caller,
                Step::Guess(caller) => {
                    guessed = true;
                    caller
                }
            };
            place = self.place(find, caller);
            if caller.is_exact() {
                stack.interrupted_at(registers.get(self.facts().stack_pointer).unwrap_or(0));
            } else if place.code == Code::NotCode {
                return StackEnd::BadValue;
            }
        }
    }

    /// What is known of the place that a frame stands at. A return address that no call stands
    /// before is that of the instruction itself.
    fn place(&mut self, find: &mut dyn FindCode, address: FrameAddress) -> Place {
        let code = find.code(address.lookup_address());
        let row = self.row(code, address);
        if row != Row::NotCalled {
            return Place { address, code, row };
        }
        let address = FrameAddress::Instruction(address.address());
        let code = find.code(address.lookup_address());
        Place { address, code, row: self.row(code, address) }
    }

    /// One step from the frame at a place.
    fn step(
        &mut self,
        find: &mut dyn FindCode,
        place: &Place,
        registers: &mut Registers,
        stack: &StackCopy<'_>,
    ) -> Step {
        let Place { address, code, row } = *place;
        let facts = self.facts();
        let frame = Frame { facts, stack, is_exact: address.is_exact() };
        if let Code::Module(code) = code {
            let module = self.modules.get(code.module.index());
            match row {
                Row::Short(row) => return frame.apply_short(&row, registers),
                Row::Outermost => return Step::End(StackEnd::Root),
                Row::OtherStack => {
                    let caller = module.and_then(|module| {
                        go_frames::leave_stack(module, code, facts, stack, registers)
                    });
                    return caller.unwrap_or(Step::End(StackEnd::OtherStack));
                }
                Row::Long(number) => {
                    if let (Some(row), Some(module)) = (self.rows.long_row(number), module) {
                        return frame.apply_long(row, module, registers);
                    }
                }
                Row::NoInfo | Row::NotCalled => {
                    let is_entry = module.is_some_and(|module| module.is_entry(code.address));
                    if let (true, Some(end)) = (is_entry, frame.process_start(registers)) {
                        return Step::End(end);
                    }
                }
            }
        }
        if let (Code::Epilogue(epilogue), false) = (code, address.is_exact()) {
            return frame.apply_short(&epilogue.row, registers);
        }
        self.bare(place, stack).step(find, registers)
    }

    /// One step by a row that counts from a frame pointer which is not known. What stands behind a call of any function is
    /// its return address only if that caller was called, too.
    fn leave_without_frame_pointer(
        &mut self,
        find: &mut dyn FindCode,
        (place, row): (&Place, &ShortRow),
        registers: &mut Registers,
        stack: &StackCopy<'_>,
    ) -> Step {
        let left = self.bare(place, stack).leave_without_frame_pointer(row, find, registers);
        let LostStep { step: Step::Guess(caller), is_open: true } = left else { return left.step };
        let mut ahead = *registers;
        let place = self.place(find, caller);
        let next = self.step(find, &place, &mut ahead, stack);
        let is_called = self.bare(&place, stack).is_called(find, next);
        if is_called { left.step } else { Step::End(StackEnd::BadValue) }
    }

    fn bare<'f>(&'f self, place: &Place, stack: &'f StackCopy<'f>) -> BareFrame<'f> {
        let Place { address, code, .. } = *place;
        BareFrame { facts: self.facts(), modules: &self.modules, stack, address, code, start: None }
    }

    #[inline]
    fn row(&mut self, code: Code, address: FrameAddress) -> Row {
        let Code::Module(code) = code else { return Row::NoInfo };
        let (modules, context) = (&self.modules, &mut self.context);
        let is_return = !address.is_exact();
        let key = RowKey { module: code.module, address: code.address, is_return };
        self.rows.row(key, || {
            let module = modules.get(code.module.index())?;
            let exact = code.to_image_address(address.address());
            if is_return && module.is_start_without_call(exact, context) {
                return Some(Compiled::NotCalled);
            }
            module.row(code.address, context)
        })
    }
}

/// One step from a frame in code that its runtime knows, the last of so many; `None` where that does not
/// know it.
fn leave_runtime(
    find: &mut dyn FindCode,
    place: &Place,
    registers: &mut Registers,
    (facts, stack, frames): (&Facts, &StackCopy<'_>, usize),
) -> Option<Step> {
    let position = frames.saturating_sub(1);
    let frame = RuntimeFrame { position, address: place.address, registers, stack };
    let caller = match find.leave(frame) {
        Left::Caller(caller) => caller,
        Left::End(end) => return Some(Step::End(end)),
        Left::Unknown => return None,
    };
    let sp = registers.get(facts.stack_pointer).unwrap_or(0);
    // The innermost frame may have given back its stack, and have its return address in a register.
    let is_lower = match position {
        0 => caller.stack_pointer.0 < sp,
        _ => caller.stack_pointer.0 <= sp,
    };
    if is_lower || caller.address.0 == 0 {
        return Some(Step::End(StackEnd::BadValue));
    }
    registers.keep_only(0);
    registers.set(facts.program_counter, caller.address.0);
    registers.set(facts.stack_pointer, caller.stack_pointer.0);
    if let Some(fp) = caller.frame_pointer {
        registers.set(facts.frame_pointer, fp);
    }
    Some(Step::Caller(FrameAddress::Return(caller.address)))
}

/// Where frames go to.
struct Frames<'f> {
    limit: usize,
    out: &'f mut Vec<FrameAddress>,
    watch: &'f mut dyn FnMut(usize, &Registers),
}

/// Where a frame stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: FrameAddress,
    /// What the address points to.
    code: Code,
    row: Row,
}

impl Unwinder for CfiUnwinder {
    fn unwind(
        &mut self,
        find: &mut dyn FindCode,
        registers: &Registers,
        stack: &StackCopy<'_>,
        limit: usize,
        out: &mut Vec<FrameAddress>,
    ) -> StackEnd {
        self.unwind_watched(find, (registers, stack), limit, out, &mut |_, _| {})
    }
}

#[cfg(test)]
mod robustness_tests;
#[cfg(test)]
mod runtime_tests;
#[cfg(test)]
mod tests;
