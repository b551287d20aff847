//! The call that a return address stands behind.

use flame_profile::ProcessAddress;

use crate::arch::Facts;
use crate::code::Code;
use crate::module::Module;

/// What the bytes before a return address say of how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallBefore {
    /// A call of the code at that address.
    Direct(ProcessAddress),
    /// A call of the code whose address stands in that word of the process: `call *disp(%rip)`,
    /// or the call of a stub that jumps so.
    Through(ProcessAddress),
    /// A call through a register or any other word: of anything.
    Indirect,
    /// No call: this is no return address.
    NoCall,
    /// The bytes are not known.
    Unseen,
}

impl CallBefore {
    pub(crate) fn look(
        facts: &Facts,
        modules: &[Module],
        code: Code,
        return_address: ProcessAddress,
    ) -> CallBefore {
        let code = match code {
            Code::Module(code) => code,
            Code::Executable => return CallBefore::Unseen,
            Code::NotCode => return CallBefore::NoCall,
        };
        let text = modules.get(code.module.index()).and_then(Module::text);
        let at = |address| text?.split_at(code.to_image_address(address));
        let Some((before, _)) = at(return_address) else {
            return CallBefore::Unseen;
        };
        if !(facts.ends_with_call)(before) {
            return CallBefore::NoCall;
        }
        let from = |address: ProcessAddress, distance| {
            ProcessAddress(address.0.wrapping_add_signed(distance))
        };
        let Some(distance) = (facts.direct_call_target)(before) else {
            let slot = (facts.call_slot)(before).map(|distance| from(return_address, distance));
            return slot.map_or(CallBefore::Indirect, CallBefore::Through);
        };
        let target = from(return_address, distance);
        match at(target) {
            Some((_, stub)) if (facts.is_plt_stub)(stub) => {
                let slot = (facts.stub_slot)(stub).map(|distance| from(target, distance));
                slot.map_or(CallBefore::Indirect, CallBefore::Through)
            }
            _ => CallBefore::Direct(target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BIAS, CODE, JIT, MAIN, TESTED, text};
    use crate::{Architecture, CfiUnwinder, CodeAddress, UnwindSections};

    /// `call TESTED` ends at MAIN + 0x20, `call *%rax` at MAIN + 0x30, `call STUB` at MAIN + 0x40.
    #[track_caller]
    fn check(address: u64, expect: CallBefore) {
        const STUB: u64 = CODE + 0x40;
        let direct = |to: u64, end: u64| {
            let distance = to.wrapping_sub(end) as u32;
            [&[0xe8][..], &distance.to_le_bytes()].concat()
        };
        let (tested, stub) = (direct(TESTED, MAIN + 0x20), direct(STUB, MAIN + 0x40));
        let pieces: [(u64, &[u8]); 5] = [
            (MAIN + 0x60, &[0xff, 0x15, 0x20, 0, 0, 0]),
            (STUB, &[0xff, 0x25, 1, 2, 3, 4]),
            (MAIN + 0x1b, &tested),
            (MAIN + 0x2e, &[0xff, 0xd0]),
            (MAIN + 0x3b, &stub),
        ];
        let mut unwinder = CfiUnwinder::new(Architecture::X86_64);
        let sections = UnwindSections { text: Some(text(&pieces)), ..UnwindSections::default() };
        let module = unwinder.add_module(sections);
        let address = ProcessAddress(BIAS + address);
        let code = Code::Module(CodeAddress::new(module, address, BIAS));
        assert_eq!(unwinder.call_before(code, address), expect);
    }

    #[test]
    fn calls_tell_what_they_call() {
        check(MAIN + 0x20, CallBefore::Direct(ProcessAddress(BIAS + TESTED)));
        check(MAIN + 0x30, CallBefore::Indirect);
        // The stub's word is 0x04030201 beyond its end.
        let word = CODE + 0x46 + 0x0403_0201;
        check(MAIN + 0x40, CallBefore::Through(ProcessAddress(BIAS + word)));
        check(MAIN + 0x66, CallBefore::Through(ProcessAddress(BIAS + MAIN + 0x86)));
        check(MAIN + 0x21, CallBefore::NoCall);
        check(CODE - 1, CallBefore::Unseen);
    }

    #[test]
    fn memory_without_an_image_tells_nothing() {
        let unwinder = CfiUnwinder::new(Architecture::X86_64);
        let call = |code| unwinder.call_before(code, ProcessAddress(JIT));
        assert_eq!(call(Code::Executable), CallBefore::Unseen);
        assert_eq!(call(Code::NotCode), CallBefore::NoCall);
    }
}
