//! How each version of Lua writes its instructions.

/// The event of 5.4's arithmetic, whose instructions have its number in their last operand.
const OPERAND: u8 = 255;

/// How a version writes instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// How many bits the operation has; the first operand follows it.
    operation: u32,
    /// Where the second and the third operand are, and how many bits they have.
    second: u32,
    pub(super) third: u32,
    pub(super) bits: u32,
    /// Where a jump has how far it goes, and what stands for 0.
    jump_at: (u32, i64),
    /// Which operations load the register of their first operand.
    loads: u128,
    pub(super) moves: u8,
    nil: u8,
    /// Whether that has how many registers it loads, rather than the last one.
    nil_counts: bool,
    pub(super) upvalue: u8,
    /// A global by its name.
    pub(super) global: u8,
    /// Fields of upvalues, of tables by any key, and by a constant.
    pub(super) field_of_upvalue: u8,
    pub(super) any_field: u8,
    pub(super) field: u8,
    pub(super) method: u8,
    /// Whether the name of a method may be in a register, which a bit tells.
    has_method_bit: bool,
    jump: u8,
    pub(super) calls: [u8; 2],
    pub(super) iterates: u8,
    makes: u8,
    /// What stores a value in a global, a field of an upvalue, an upvalue, a table by any key, and by a
    /// constant.
    pub(super) stores: [u8; 5],
    /// Which operations, from the first to the last, have which event.
    events: &'static [(u8, u8, u8)],
}

/// No operation.
const NONE: u8 = 255;

/// Bits from the first to the last of each pair.
const fn bits<const N: usize>(ranges: [(u8, u8); N]) -> u128 {
    let (mut bits, mut index) = (0, 0);
    while index < N {
        let mut bit = ranges[index].0;
        while bit <= ranges[index].1 {
            bits |= 1 << bit;
            bit += 1;
        }
        index += 1;
    }
    bits
}

impl Code {
    /// 5.1.
    pub(crate) const V1: Code = Code {
        operation: 6,
        second: 23,
        third: 14,
        bits: 9,
        jump_at: (14, 131_071),
        loads: bits([(0, 6), (10, 21), (26, 29), (31, 32), (36, 37)]),
        moves: 0,
        nil: 3,
        nil_counts: false,
        upvalue: 4,
        global: 5,
        field_of_upvalue: NONE,
        any_field: 6,
        field: NONE,
        method: 11,
        has_method_bit: false,
        jump: 22,
        calls: [28, 29],
        iterates: 33,
        makes: 36,
        stores: [7, NONE, 8, 9, NONE],
        events: &[
            (5, 6, 0),
            (11, 11, 0),
            (7, 7, 1),
            (9, 9, 1),
            (12, 14, 6),
            (15, 15, 11),
            (16, 17, 9),
            (18, 18, 18),
            (20, 20, 4),
            (21, 21, 22),
            (23, 23, 5),
            (24, 24, 20),
            (25, 25, 21),
        ],
    };
    /// 5.2.
    pub(crate) const V2: Code = Code {
        loads: bits([(0, 7), (11, 22), (28, 30), (32, 33), (35, 35), (37, 38)]),
        nil: 4,
        nil_counts: true,
        upvalue: 5,
        global: NONE,
        field_of_upvalue: 6,
        any_field: 7,
        method: 12,
        jump: 23,
        calls: [29, 30],
        iterates: 34,
        makes: 37,
        stores: [NONE, 8, 9, 10, NONE],
        events: &[
            (6, 7, 0),
            (12, 12, 0),
            (8, 8, 1),
            (10, 10, 1),
            (13, 15, 6),
            (16, 16, 11),
            (17, 18, 9),
            (19, 19, 18),
            (21, 21, 4),
            (22, 22, 22),
            (24, 24, 5),
            (25, 25, 20),
            (26, 26, 21),
        ],
        ..Code::V1
    };
    /// 5.3.
    pub(crate) const V3: Code = Code {
        loads: bits([(0, 7), (11, 29), (35, 37), (39, 40), (42, 42), (44, 45)]),
        jump: 30,
        calls: [36, 37],
        iterates: 41,
        makes: 44,
        events: &[
            (6, 7, 0),
            (12, 12, 0),
            (8, 8, 1),
            (10, 10, 1),
            (13, 26, 6),
            (28, 28, 4),
            (29, 29, 22),
            (31, 31, 5),
            (32, 32, 20),
            (33, 33, 21),
        ],
        ..Code::V2
    };
    /// 5.4.
    pub(crate) const V4: Code = Code {
        operation: 7,
        second: 16,
        third: 24,
        bits: 8,
        jump_at: (7, 16_777_215),
        loads: bits([(0, 9), (11, 14), (19, 45), (49, 53), (67, 69), (73, 74), (77, 77), (79, 81)]),
        nil: 8,
        upvalue: 9,
        field_of_upvalue: 11,
        any_field: 12,
        field: 14,
        method: 20,
        has_method_bit: true,
        jump: 56,
        calls: [68, 69],
        iterates: 76,
        makes: 79,
        stores: [NONE, 15, 10, NONE, 18],
        events: &[
            (11, 14, 0),
            (20, 20, 0),
            (15, 18, 1),
            (46, 48, OPERAND),
            (49, 50, 18),
            (52, 52, 4),
            (53, 53, 22),
            (54, 54, 24),
            (57, 57, 5),
            (58, 59, 20),
            (62, 62, 20),
            (63, 63, 21),
            (64, 64, 20),
            (65, 65, 21),
            (70, 70, 24),
        ],
        ..Code::V3
    };

    /// 5.5.
    pub(crate) const V5: Code = Code { has_method_bit: false, ..Code::V4 };

    pub(super) fn operation(&self, instruction: u32) -> u8 {
        instruction.to_le_bytes()[0] & ((1 << self.operation) - 1)
    }

    pub(super) fn first(&self, instruction: u32) -> u32 {
        instruction >> self.operation & 0xff
    }

    pub(super) fn second(&self, instruction: u32) -> u32 {
        instruction >> self.second & ((1 << self.bits) - 1)
    }

    pub(super) fn third(&self, instruction: u32) -> u32 {
        instruction >> self.third & ((1 << self.bits) - 1)
    }

    /// The number of the function that it makes among those of the one that does, if it makes one.
    pub(super) fn made(&self, instruction: u32) -> Option<u32> {
        let at = if self.bits == 8 { 15 } else { self.third };
        (self.operation(instruction) == self.makes).then_some(instruction >> at)
    }

    /// Whether it may say of 5.1 what a function that is made just before has of the one that makes it.
    pub(super) fn is_captured(&self, instruction: u32) -> bool {
        let operation = self.operation(instruction);
        let captures = [self.moves, self.upvalue].contains(&operation);
        self.global != NONE && captures && self.first(instruction) == 0
    }

    /// Whether an instruction calls a function, rather than a metamethod.
    pub(super) fn is_call(&self, instruction: u32) -> bool {
        self.calls.contains(&self.operation(instruction))
    }

    /// The number of the constant that the third operand is, if it is one.
    pub(super) fn constant(&self, instruction: u32) -> Option<u32> {
        let third = self.third(instruction);
        match self.bits {
            // A bit of its own says it, where fields have no operation of their own.
            8 if self.operation(instruction) == self.method && self.has_method_bit => {
                (instruction >> 15 & 1 == 1).then_some(third)
            }
            8 => Some(third),
            _ => third.checked_sub(256),
        }
    }

    /// Whether it loads a register.
    pub(super) fn loads(&self, instruction: u32, register: u32) -> bool {
        let (operation, first) = (self.operation(instruction), self.first(instruction));
        let second = self.second(instruction);
        match operation {
            _ if operation == self.nil && self.nil_counts => {
                (first..=first + second).contains(&register)
            }
            _ if operation == self.nil => (first..=second).contains(&register),
            _ if operation == self.iterates => register >= first + 2,
            _ if self.calls.contains(&operation) => register >= first,
            _ => self.loads >> operation & 1 == 1 && first == register,
        }
    }

    /// Where a jump leads, counted from where it stands.
    pub(super) fn jump(&self, instruction: u32) -> Option<i64> {
        let (at, zero) = self.jump_at;
        let is_jump = self.operation(instruction) == self.jump;
        is_jump.then(|| i64::from(instruction >> at) - zero + 1)
    }

    /// The number of the constant that the second operand is, where it is the key of a field.
    pub(super) fn key(&self, instruction: u32) -> Option<u32> {
        let second = self.second(instruction);
        if self.bits == 8 { Some(second) } else { second.checked_sub(256) }
    }

    /// The number of the event by which an instruction calls, if it does.
    pub(super) fn event(&self, instruction: u32) -> Option<usize> {
        let operation = self.operation(instruction);
        let mut events = self.events.iter();
        let (from, _, event) = *events.find(|(from, to, _)| (*from..=*to).contains(&operation))?;
        match event {
            OPERAND => usize::try_from(self.third(instruction)).ok(),
            // Those of arithmetic and of comparing follow each other as their operations do.
            6..=20 => Some(usize::from(event + (operation - from))),
            event => Some(usize::from(event)),
        }
    }
}
