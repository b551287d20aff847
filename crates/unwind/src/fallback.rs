//! Steps through code that no table covers: JIT code, assembly, C libraries without tables.
//!
//! All of this is inference, so each candidate for a return address must look like one: it points
//! into executable memory, and behind a call where the bytes before it can be seen. What is found
//! like that is a [`Step::Guess`], and nothing here is ever taken for the root.

use flame_profile::{ImageAddress, ProcessAddress, StackEnd};

use crate::arch::{CallLeaves, Facts, FrameState};
use crate::code::{Code, CodeAddress, FindCode, FrameAddress, ModuleId};
use crate::module::Module;
use crate::registers::Registers;
use crate::stack_copy::{StackCopy, Unreadable};
use crate::step::Step;

mod lost_pointer;

pub(crate) use lost_pointer::LostStep;

/// How far before the program counter a call's target may be for both to count as one function.
const LONGEST_LEAF: u64 = 4096;

/// A frame without a row.
pub(crate) struct BareFrame<'f> {
    pub(crate) facts: &'static Facts,
    pub(crate) modules: &'f [Module],
    pub(crate) stack: &'f StackCopy<'f>,
    pub(crate) address: FrameAddress,
    /// What `address` points to.
    pub(crate) code: Code,
    /// Where the function begins, where a table says so.
    pub(crate) start: Option<ProcessAddress>,
}

/// What a candidate for a return address is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// It points to no code, or not behind a call.
    None,
    /// It points into code whose bytes are not known.
    Code,
    /// It points behind a call of another function, which may have jumped on to this one.
    CallOfOther,
    /// It points behind a call through a register, memory or a PLT stub: of any function.
    OpenCall,
    /// It points behind a call of the very function that the frame is in, or to the code that
    /// ends signal handlers, which handlers return to without having been called.
    CallOfThis,
}

impl BareFrame<'_> {
    /// Leaves a signal frame if this is one. Else tries, in this order: a return address that the
    /// function has not moved yet, the frame pointer, a return address that speaks less for
    /// itself.
    ///
    /// The frame pointer comes second because most code without tables is assembly that makes no
    /// frame: there it is the caller's, and to follow it would leave the caller out.
    pub(crate) fn step(&self, find: &mut dyn FindCode, registers: &mut Registers) -> Step {
        if let Some(step) = self.leave_signal_frame(registers) {
            return step;
        }
        if let Some(step) = self.leave_proven_leaf(registers) {
            return step;
        }
        let state = self.frame_state();
        let leaf = if self.address.is_exact() { self.leaf(registers) } else { None };
        let evidence = leaf.map_or(Evidence::None, |address| self.evidence(find, address));
        let enough = match (state, self.code, self.facts.call_leaves) {
            (FrameState::Bare, ..) => Evidence::Code,
            // A call of something that is not a function, such as a null pointer.
            (_, Code::NotCode, _) => Evidence::OpenCall,
            (_, Code::Module(_), CallLeaves::OnStack) => Evidence::OpenCall,
            // JIT code has frame pointers or nothing that could be understood here. A register
            // keeps the return address of the last call that the function itself has made.
            _ => Evidence::CallOfThis,
        };
        if let Some(address) = leaf.filter(|_| evidence >= enough) {
            return self.leave_leaf(address, registers);
        }
        if self.code == Code::NotCode {
            return Step::End(StackEnd::BadValue);
        }
        if state == FrameState::FramePointerPushed
            && let Some(step) = self.leave_pushed(find, registers)
        {
            return step;
        }
        match (self.leave_by_frame_pointer(find, registers), leaf) {
            (Step::End(StackEnd::NoUnwindInfo), Some(address))
                if evidence >= Evidence::CallOfOther =>
            {
                self.leave_leaf(address, registers)
            }
            (step, _) => step,
        }
    }

    /// At the code that ends a signal handler all registers lie where the kernel put them. `None`
    /// at any other code, and if the program counter was not copied.
    fn leave_signal_frame(&self, registers: &mut Registers) -> Option<Step> {
        let Code::Module(code) = self.code else {
            return None;
        };
        let exact = code.to_image_address(self.address.address());
        let (_, at) = self.text_at(code.module, exact)?;
        if !(self.facts.is_signal_return)(at) {
            return None;
        }
        let sp = registers.get(self.facts.stack_pointer)?;
        let mut interrupted = Registers::default();
        for (register, offset) in self.facts.signal_frame {
            if let Ok(value) = self.stack.read_u64(sp.wrapping_add(*offset)) {
                interrupted.set(*register, value);
            }
        }
        let pc = interrupted.get(self.facts.program_counter)?;
        *registers = interrupted;
        Some(Step::Caller(FrameAddress::Instruction(ProcessAddress(pc))))
    }

    /// Leaves a function whose own code says that it returns to the register of return addresses: no guess.
    fn leave_proven_leaf(&self, registers: &mut Registers) -> Option<Step> {
        let Code::Module(code) = self.code else { return None };
        let (before, at) = self.text_at(code.module, code.address)?;
        if !self.address.is_exact() || !(self.facts.only_returns)(before, at) {
            return None;
        }
        let address = self.leaf(registers).filter(|address| *address != 0)?;
        let sp = registers.get(self.facts.stack_pointer)?;
        match self.to_caller(address, sp, registers) {
            Step::Guess(caller) => Some(Step::Caller(caller)),
            step => Some(step),
        }
    }

    fn frame_state(&self) -> FrameState {
        let text = match self.code {
            Code::Module(code) if self.address.is_exact() => {
                self.text_at(code.module, code.address)
            }
            _ => None,
        };
        text.map_or(FrameState::Unknown, |(before, at)| (self.facts.frame_state)(before, at))
    }

    /// The return address if this function has made no frame.
    fn leaf(&self, registers: &Registers) -> Option<u64> {
        match self.facts.call_leaves {
            CallLeaves::OnStack => {
                self.stack.read_u64(registers.get(self.facts.stack_pointer)?).ok()
            }
            CallLeaves::InRegister(register) => {
                Some(registers.get(register)? & self.facts.code_address_mask)
            }
        }
    }

    fn leave_leaf(&self, return_address: u64, registers: &mut Registers) -> Step {
        let pushed = match self.facts.call_leaves {
            CallLeaves::OnStack => 8,
            CallLeaves::InRegister(_) => 0,
        };
        let sp = registers.get(self.facts.stack_pointer).unwrap_or(0);
        self.to_caller(return_address, sp.wrapping_add(pushed), registers)
    }

    /// Right behind `push %rbp`: the caller's frame pointer is still in its register.
    fn leave_pushed(&self, find: &mut dyn FindCode, registers: &mut Registers) -> Option<Step> {
        let sp = registers.get(self.facts.stack_pointer)?;
        let address = self.stack.read_u64(sp.wrapping_add(8)).ok()?;
        let is_plausible = self.evidence(find, address) >= Evidence::Code;
        is_plausible.then(|| self.to_caller(address, sp.wrapping_add(16), registers))
    }

    /// Through the pair of words that the frame pointer points to: the caller's frame pointer,
    /// then the return address.
    fn leave_by_frame_pointer(&self, find: &mut dyn FindCode, registers: &mut Registers) -> Step {
        let none = Step::End(StackEnd::NoUnwindInfo);
        let Some(fp) = registers.get(self.facts.frame_pointer) else {
            return none;
        };
        // Threads begin with 0: where code has no frame pointers, that ends no chain.
        let sp = registers.get(self.facts.stack_pointer).unwrap_or(0);
        if fp < sp || fp % 8 != 0 {
            return none;
        }
        let pair = (self.stack.read_u64(fp), self.stack.read_u64(fp.wrapping_add(8)));
        let (caller_fp, address) = match pair {
            (Ok(caller_fp), Ok(address)) => (caller_fp, address & self.facts.code_address_mask),
            (Err(Unreadable::NotCopied), _) | (_, Err(Unreadable::NotCopied)) => {
                return Step::End(StackEnd::CopyTooShort);
            }
            _ => return none,
        };
        if self.evidence(find, address) == Evidence::None {
            // Coroutines start with a zero frame pointer and return to code that never called
            // them: goroutines to the second byte of runtime.goexit.
            let is_first = caller_fp == 0 && find.code(ProcessAddress(address)) != Code::NotCode;
            return if is_first { Step::End(StackEnd::ChainEnd) } else { none };
        }
        registers.set(self.facts.frame_pointer, caller_fp);
        self.to_caller(address, fp.wrapping_add(16), registers)
    }

    fn to_caller(&self, return_address: u64, sp: u64, registers: &mut Registers) -> Step {
        let address = return_address & self.facts.code_address_mask;
        registers.keep_only(self.facts.callee_saved);
        registers.set(self.facts.stack_pointer, sp);
        registers.set(self.facts.program_counter, address);
        Step::Guess(FrameAddress::Return(ProcessAddress(address)))
    }

    fn evidence(&self, find: &mut dyn FindCode, address: u64) -> Evidence {
        let Some(call) = address.checked_sub(1) else {
            return Evidence::None;
        };
        let code = match find.code(ProcessAddress(call)) {
            Code::NotCode => return Evidence::None,
            Code::Executable | Code::Runtime => return Evidence::Code,
            Code::Epilogue(_) => return Evidence::OpenCall,
            Code::Module(code) => code,
        };
        let image_address = code.to_image_address(ProcessAddress(address));
        let Some((before, at)) = self.text_at(code.module, image_address) else {
            return Evidence::Code;
        };
        if (self.facts.is_signal_return)(at) {
            return Evidence::CallOfThis;
        }
        if !(self.facts.ends_with_call)(before) {
            return Evidence::None;
        }
        match (self.facts.direct_call_target)(before) {
            Some(distance) => {
                self.evidence_of_target(code, ProcessAddress(address.wrapping_add_signed(distance)))
            }
            None => Evidence::OpenCall,
        }
    }

    /// What a direct call from `caller` to `target` says.
    fn evidence_of_target(&self, caller: CodeAddress, target: ProcessAddress) -> Evidence {
        let is_this = match self.start {
            Some(start) => start == target,
            None => self.address.address().0.wrapping_sub(target.0) < LONGEST_LEAF,
        };
        if is_this {
            return Evidence::CallOfThis;
        }
        let code = self.text_at(caller.module, caller.to_image_address(target));
        match code {
            Some((_, at)) if (self.facts.is_plt_stub)(at) => Evidence::OpenCall,
            _ => Evidence::CallOfOther,
        }
    }

    fn text_at(&self, module: ModuleId, address: ImageAddress) -> Option<(&[u8], &[u8])> {
        self.modules.get(module.index())?.text()?.split_at(address)
    }
}

#[cfg(test)]
mod tests;
