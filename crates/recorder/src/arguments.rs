//! What a call of a function stands for, by its arguments: the bytes that malloc is asked for.

use flame_unwind::Architecture;

/// Where arguments are at the entry of a function, in perf's numbering of registers.
///
/// Sources: System V ABI, AMD64 supplement, 3.2.3; AAPCS64 6.8.2; `arch/*/include/uapi/asm/perf_regs.h`.
const X86_64: [u32; 6] = [5, 4, 3, 2, 16, 17];
const AARCH64: [u32; 6] = [0, 1, 2, 3, 4, 5];

/// A number that a function is called with; arguments count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// One of its arguments.
    One(usize),
    /// What it returns, at its end.
    Returned,
    /// Two of them multiplied.
    Product(usize, usize),
    /// The second where the first is not a null pointer: with one, what is asked of realloc is asked of
    /// malloc in turn.
    Resize(usize, usize),
}

impl Argument {
    /// The kernel's filter for calls of at least that value, and of less than `end`. Of a product it is the larger factor
    /// that counts.
    pub(crate) fn filter(self, least: u64, end: Option<u64>) -> String {
        let field = |argument: usize| format!("arg{}", argument + 1);
        let (fields, further) = match self {
            Argument::One(argument) => (vec![field(argument)], String::new()),
            Argument::Product(first, second) => (vec![field(first), field(second)], String::new()),
            Argument::Resize(pointer, len) => {
                (vec![field(len)], format!(" && {} != 0", field(pointer)))
            }
            Argument::Returned => return String::new(),
        };
        let each = |sign: &str, bound: u64, by: &str| {
            let each: Vec<_> =
                fields.iter().map(|field| format!("{field} {sign} {bound}")).collect();
            format!("({})", each.join(by))
        };
        let least = each(">=", least, " || ");
        let end = end.map(|end| format!(" && {}", each("<", end, " && ")));
        format!("{least}{}{further}", end.unwrap_or_default())
    }

    /// Its value by the registers that `mask` names, where a sample has them.
    pub(crate) fn value(self, mask: u64, registers: &[u64]) -> Option<u64> {
        let numbers = match Architecture::NATIVE {
            Architecture::X86_64 => X86_64,
            Architecture::Aarch64 => AARCH64,
        };
        let register = |number: u32| {
            let is_there = mask & (1 << number) != 0;
            let position = (mask & ((1 << number) - 1)).count_ones() as usize;
            registers.get(position).copied().filter(|_| is_there)
        };
        let get = |argument: usize| register(*numbers.get(argument)?);
        match self {
            Argument::One(argument) => get(argument),
            // rax and x0 are the first of all.
            Argument::Returned => register(0),
            Argument::Product(first, second) => get(first)?.checked_mul(get(second)?),
            Argument::Resize(pointer, len) => {
                if get(pointer)? == 0 {
                    Some(0)
                } else {
                    get(len)
                }
            }
        }
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_apart_by_the_larger_factor() {
        assert_eq!(Argument::One(1).filter(64, None), "(arg2 >= 64)");
        assert_eq!(
            Argument::Product(0, 1).filter(4, Some(64)),
            "(arg1 >= 4 || arg2 >= 4) && (arg1 < 64 && arg2 < 64)"
        );
        assert_eq!(
            Argument::Resize(0, 1).filter(0, Some(4)),
            "(arg2 >= 0) && (arg2 < 4) && arg1 != 0"
        );
    }

    #[test]
    fn arguments_are_found_among_the_registers_that_were_asked_for() {
        // rdx, rsi and rdi: bits 3 to 5.
        let (mask, registers) = (0b11_1000, [30, 20, 10]);
        let value = |argument: Argument| argument.value(mask, &registers);
        assert_eq!(value(Argument::One(0)), Some(10));
        assert_eq!(value(Argument::One(2)), Some(30));
        assert_eq!(value(Argument::One(3)), None);
        assert_eq!(value(Argument::One(9)), None);
        assert_eq!(value(Argument::Returned), None);
        assert_eq!(Argument::Returned.value(0b11_1001, &[7, 30, 20, 10]), Some(7));
        assert_eq!(value(Argument::Product(0, 1)), Some(200));
        assert_eq!(value(Argument::Resize(0, 1)), Some(20));
        assert_eq!(Argument::Resize(0, 1).value(mask, &[30, 20, 0]), Some(0));
        assert_eq!(Argument::Product(0, 1).value(mask, &[0, u64::MAX, 2]), None);
    }
}
