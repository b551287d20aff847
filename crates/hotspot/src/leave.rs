//! From a frame of the VM's code to its caller.

use crate::blob::{Blob, Compiled, Kind};
use crate::codelets::Piece;
use crate::x86_64::{Ending, FP, R13, RAX, RBX, SP, ToInterpreter, called, entering, leaving};

/// How far above its frame an interpreted method's caller may have had its stack pointer: arguments and
/// locals, of which there are at most 64 Ki.
const LARGEST_LOCALS: u64 = 1 << 20;

/// In an interpreted frame, from the frame pointer: the caller's stack pointer, and the method.
const SENDER_SP: u64 = 8;
const METHOD: u64 = 24;

/// How far from its beginning a routine of the VM's may reach.
const LONGEST_ROUTINE: u64 = 16 << 10;

/// A thread's registers and stack, as they were when it was sampled.
pub trait Thread {
    /// A register by its DWARF number, if it is known.
    fn register(&self, number: u8) -> Option<u64>;

    /// The word of its stack at an address, if there is a copy of it.
    fn word(&self, address: u64) -> Option<u64>;
}

/// A frame.
#[derive(Clone, Copy)]
pub struct Frame<'t> {
    /// The instruction that would have run next, or the one that a call returns to.
    pub pc: u64,
    /// Whether the frame stands at its instruction, and not behind a call.
    pub is_exact: bool,
    /// Its thread, with the registers that the frame has.
    pub thread: &'t dyn Thread,
}

impl std::fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("pc", &self.pc).field("is_exact", &self.is_exact).finish()
    }
}

/// What is known of a frame's caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Its address, stack pointer and frame pointer; of other registers nothing is known.
    Caller {
        /// The return address.
        pc: u64,
        /// The stack pointer.
        sp: u64,
        /// The frame pointer, as far as it is known.
        fp: Option<u64>,
    },
    /// The word at this address of the stack would say it.
    Needs(u64),
    /// Nothing for sure.
    NotProven,
}

/// Why there is no caller.
pub(crate) enum Stop {
    Needs(u64),
    NotProven,
}

pub(crate) type Result<T> = std::result::Result<T, Stop>;

impl From<Result<Left>> for Left {
    fn from(left: Result<Left>) -> Left {
        left.unwrap_or_else(|stop| match stop {
            Stop::Needs(address) => Left::Needs(address),
            Stop::NotProven => Left::NotProven,
        })
    }
}

/// What is known of addresses elsewhere in the VM's code.
pub(crate) trait Places {
    /// The code before a return address, at most so much.
    fn code_before(&mut self, address: u64, into: &mut [u8]) -> bool;
    /// The piece of the interpreter at an address.
    fn interpreting(&mut self, blob: &Blob, address: u64) -> Option<Piece>;
    /// Where the byte code of the method at an address is.
    fn byte_code(&mut self, method: u64) -> Option<std::ops::Range<u64>>;
    /// Whether an address is the one that the stub returns to by which the VM calls Java.
    fn is_entry_return(&self, address: u64) -> bool;
    /// Whether an address is in the interpreter, or behind the stub by which the VM calls Java.
    fn is_interpreted(&mut self, address: u64) -> bool;
}

impl Frame<'_> {
    pub(crate) fn register(&self, number: u8) -> Result<u64> {
        self.thread.register(number).ok_or(Stop::NotProven)
    }

    pub(crate) fn word(&self, address: u64) -> Result<u64> {
        self.thread.word(address).ok_or(Stop::Needs(address))
    }

    /// The caller behind a return address on the stack.
    fn caller(&self, return_at: u64, fp: Option<u64>) -> Result<Left> {
        Ok(Left::Caller { pc: self.word(return_at)?, sp: return_at.wrapping_add(8), fp })
    }

    fn unmoved_fp(&self) -> Option<u64> {
        self.thread.register(FP)
    }

    /// Leaves the frame in a piece of code.
    pub(crate) fn leave(&self, blob: &Blob, places: &mut dyn Places) -> Result<Left> {
        match &blob.kind {
            // What finds the method of a method handle and jumps there.
            Kind::Method(compiled) if compiled.is_native && blob.frame_size == 0 => {
                self.leave_bare(places)
            }
            Kind::Method(compiled) => self.leave_compiled(blob, Some(compiled)),
            Kind::Stub => self.leave_stub(blob),
            Kind::Interpreter => self.leave_interpreted(blob, places),
            Kind::Routines => self.leave_routine(blob, places),
            Kind::Dispatch => self.leave_bare(places),
            Kind::Leaf => self.caller(self.register(SP)?, self.unmoved_fp()),
            Kind::Adapter(way) => self.leave_adapter((blob, *way), places),
        }
    }

    /// Out of code that calls the VM, which has a frame of known size or begins with `push %rbp; mov %rsp,%rbp`.
    fn leave_stub(&self, blob: &Blob) -> Result<Left> {
        let is_by_size = !self.is_exact && blob.frame_size != 0 || blob.frame_complete.is_some();
        if is_by_size || !makes_frame(&blob.code) {
            return self.leave_compiled(blob, None);
        }
        let code = blob.code_at(self.pc).unwrap_or_default();
        match (self.is_exact, self.pc - blob.code_begin) {
            (true, 0) => self.caller(self.register(SP)?, self.unmoved_fp()),
            (true, 1) => self.caller(self.register(SP)?.wrapping_add(8), self.unmoved_fp()),
            (true, _) if code.starts_with(&[0xc3]) => self.leave_compiled(blob, None),
            _ => {
                let fp = self.register(FP)?;
                if fp < self.register(SP)? || !fp.is_multiple_of(8) {
                    return Err(Stop::NotProven);
                }
                self.caller(fp.wrapping_add(8), Some(self.word(fp)?))
            }
        }
    }

    fn leave_compiled(&self, blob: &Blob, compiled: Option<&Compiled>) -> Result<Left> {
        let sp = self.register(SP)?;
        if self.is_exact {
            let offset = self.pc.wrapping_sub(blob.code_begin);
            let code = blob.code_at(self.pc).ok_or(Stop::NotProven)?;
            if let Some(left) = leaving(code) {
                let fp = match left.fp_at {
                    Some(at) => Some(self.word(sp.wrapping_add(at))?),
                    None => self.unmoved_fp(),
                };
                return self.caller(sp.wrapping_add(left.return_at), fp);
            }
            let complete = blob.frame_complete.ok_or(Stop::NotProven)?;
            if compiled.is_some_and(|compiled| offset <= compiled.verified_entry) {
                return self.caller(sp, self.unmoved_fp());
            }
            if offset < complete {
                return self.leave_entered(blob, code, (complete - offset, sp));
            }
            if compiled.is_some_and(|compiled| offset >= compiled.stub && !compiled.is_native) {
                return Err(Stop::NotProven);
            }
        }
        if blob.frame_size < 16 {
            return Err(Stop::NotProven);
        }
        let end = sp.wrapping_add(blob.frame_size);
        let fp = self.word(end.wrapping_sub(16))?;
        self.caller(end.wrapping_sub(8), Some(fp))
    }

    /// Before the frame is complete, this many bytes of code from there.
    fn leave_entered(&self, blob: &Blob, code: &[u8], (left, sp): (u64, u64)) -> Result<Left> {
        let code = usize::try_from(left).ok().and_then(|left| code.get(..left));
        let entering = code.and_then(entering).ok_or(Stop::NotProven)?;
        if entering.grows + 8 > blob.frame_size {
            return Err(Stop::NotProven);
        }
        let end = sp.wrapping_sub(entering.grows).wrapping_add(blob.frame_size);
        let fp = match entering.saves_fp {
            true => self.unmoved_fp(),
            false => Some(self.word(end.wrapping_sub(16))?),
        };
        self.caller(end.wrapping_sub(8), fp)
    }

    fn leave_interpreted(&self, blob: &Blob, places: &mut dyn Places) -> Result<Left> {
        let piece = places.interpreting(blob, self.pc).unwrap_or(Piece::Runs);
        match piece {
            Piece::Runs if self.is_exact => {
                let pc = match Ending::of(&blob.code, blob.offset(self.pc)) {
                    Some(Ending::Left) => Some(self.word(self.register(SP)?)?),
                    Some(Ending::Popped(register)) => Some(self.register(register)?),
                    None => None,
                };
                if let Some(pc) = pc {
                    return Ok(Left::Caller { pc, sp: self.register(RBX)?, fp: self.unmoved_fp() });
                }
            }
            Piece::Enters(start, made) if self.is_exact => {
                let at = usize::try_from(self.pc.wrapping_sub(start)).unwrap_or(usize::MAX);
                let (sp, caller_sp) = (self.register(SP)?, self.thread.register(R13));
                let of_caller = |pc| {
                    let sp = caller_sp.ok_or(Stop::NotProven)?;
                    Ok(Left::Caller { pc, sp, fp: self.unmoved_fp() })
                };
                if at < made.popped {
                    return of_caller(self.word(sp)?);
                }
                if at <= made.pushes {
                    return of_caller(self.register(RAX)?);
                }
                if at == made.pushes + 1 {
                    return of_caller(self.word(sp)?);
                }
                if at == made.pushes + 2 {
                    return of_caller(self.word(sp.wrapping_add(8))?);
                }
                if at <= made.pushes + 5 {
                    let fp = self.register(FP)?;
                    let pc = self.word(fp.wrapping_add(8))?;
                    let sp = caller_sp.ok_or(Stop::NotProven)?;
                    return Ok(Left::Caller { pc, sp, fp: Some(self.word(fp)?) });
                }
                if at < made.named {
                    return self.through_fp();
                }
            }
            Piece::Instead if self.is_exact => {
                let pc = self.word(self.register(SP)?)?;
                let sp = self.register(R13)?;
                return match places.is_interpreted(pc) {
                    true => Ok(Left::Caller { pc, sp, fp: self.unmoved_fp() }),
                    false => Err(Stop::NotProven),
                };
            }
            _ => {}
        }
        let method = self.word(self.register(FP)?.wrapping_sub(METHOD))?;
        places.byte_code(method).ok_or(Stop::NotProven)?;
        self.through_fp()
    }

    /// The method that is entered or runs in a frame of the interpreter.
    pub(crate) fn interpreted_method(&self, blob: &Blob, places: &mut dyn Places) -> Option<u64> {
        if self.is_exact
            && let Some(piece) = places.interpreting(blob, self.pc)
        {
            let enters = match piece {
                Piece::Runs => false,
                Piece::Instead => true,
                Piece::Enters(start, made) => self.pc.wrapping_sub(start) < made.named as u64,
            };
            if enters {
                return self.thread.register(RBX);
            }
        }
        self.thread.word(self.thread.register(FP)?.wrapping_sub(METHOD))
    }

    /// Through the frame pointer of an interpreted frame.
    fn through_fp(&self) -> Result<Left> {
        let fp = self.register(FP)?;
        if !fp.is_multiple_of(8) || fp < self.register(SP).unwrap_or(0) {
            return Err(Stop::NotProven);
        }
        let sp = self.word(fp.wrapping_sub(SENDER_SP))?;
        let above = sp.wrapping_sub(fp.wrapping_add(16));
        if above > LARGEST_LOCALS || !sp.is_multiple_of(8) {
            return Err(Stop::NotProven);
        }
        Ok(Left::Caller { pc: self.word(fp.wrapping_add(8))?, sp, fp: Some(self.word(fp)?) })
    }

    /// Where nothing has been put on the stack since the call.
    fn leave_bare(&self, places: &mut dyn Places) -> Result<Left> {
        let sp = self.register(SP)?;
        let pc = self.word(sp)?;
        let mut before = [0; 2];
        match self.is_exact && places.code_before(pc, &mut before) {
            true => self.caller(sp, self.unmoved_fp()),
            false => Err(Stop::NotProven),
        }
    }

    /// On the way between the interpreter and compiled code. On the way to compiled code the return
    /// address stays on top, and the interpreter needs its frame pointer only.
    fn leave_adapter(
        &self,
        (blob, from_code): (&Blob, Option<ToInterpreter>),
        places: &mut dyn Places,
    ) -> Result<Left> {
        let fp = self.unmoved_fp();
        let offset = blob.offset(self.pc);
        if let Some(way) = from_code
            && (way.asks..way.pops).contains(&offset)
        {
            let at = self.register(R13)?;
            let pc = self.word(at)?;
            return match places.code_before(pc, &mut [0; 2]) {
                true => Ok(Left::Caller { pc, sp: at.wrapping_add(8), fp }),
                false => Err(Stop::NotProven),
            };
        }
        if !self.is_exact {
            return Err(Stop::NotProven);
        }
        let sp = self.register(SP)?;
        let pc = self.word(sp)?;
        if places.is_interpreted(pc) {
            return self.caller(sp, fp);
        }
        let (pc, sp) = match from_code.ok_or(Stop::NotProven)? {
            way if offset < way.asks || offset == way.pops => (pc, sp.wrapping_add(8)),
            way if offset == way.pops + 1 => (self.register(RAX)?, sp),
            _ => (self.register(RAX)?, self.register(R13)?),
        };
        match places.code_before(pc, &mut [0; 2]) {
            true => Ok(Left::Caller { pc, sp, fp }),
            false => Err(Stop::NotProven),
        }
    }

    /// Out of a routine of the VM's, which begins where a call of it leads. Those with a frame begin with
    /// `push %rbp; mov %rsp,%rbp`.
    fn leave_routine(&self, blob: &Blob, places: &mut dyn Places) -> Result<Left> {
        if !self.is_exact && places.is_entry_return(self.pc) {
            let fp = self.register(FP)?;
            return self.caller(fp.wrapping_add(8), Some(self.word(fp)?));
        }
        let sp = self.register(SP)?;
        let fp = self.unmoved_fp().filter(|fp| *fp >= sp && fp.is_multiple_of(8));
        let through_fp = fp.map(|fp| fp.wrapping_add(8));
        let candidates = [through_fp, Some(sp), Some(sp.wrapping_add(8))];
        for (which, at) in candidates.into_iter().enumerate() {
            let Some(at) = at else { continue };
            let pc = match self.word(at) {
                Ok(pc) => pc,
                // The stack there was not copied; what is nearer may say it.
                Err(_) if which == 0 => continue,
                Err(stop) => return Err(stop),
            };
            let Some(start) = self.routine(blob, pc, places) else { continue };
            let offset = self.pc - start;
            let has_frame = blob.code_at(start).is_some_and(makes_frame);
            let is_it = match which {
                0 => has_frame && offset >= 4,
                1 => !has_frame || offset == 0 || offset >= 4,
                _ => has_frame && offset == 1,
            };
            if !is_it || (which > 0 && !self.is_exact) {
                continue;
            }
            let fp = match which {
                0 => Some(self.word(at.wrapping_sub(8))?),
                _ => self.unmoved_fp(),
            };
            return self.caller(at, fp);
        }
        Err(Stop::NotProven)
    }

    /// Where the routine begins that a return address says was called, if this frame is in it.
    fn routine(&self, blob: &Blob, return_address: u64, places: &mut dyn Places) -> Option<u64> {
        let mut before = [0; 13];
        if !places.code_before(return_address, &mut before) {
            return None;
        }
        let start = called(&before, return_address)?;
        let is_before = self.pc.checked_sub(start).is_some_and(|n| n < LONGEST_ROUTINE);
        (is_before && blob.has_code(start)).then_some(start)
    }
}

/// Whether a routine makes a frame first: `push %rbp; mov %rsp,%rbp`.
fn makes_frame(code: &[u8]) -> bool {
    code.starts_with(&[0x55, 0x48, 0x8b, 0xec]) || code.starts_with(&[0x55, 0x48, 0x89, 0xe5])
}
