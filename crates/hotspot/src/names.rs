//! What methods are called.

use std::sync::Arc;

use crate::layout::Layout;
use crate::memory::Blocks;

/// The longest part of a name that is read, in bytes.
const LONGEST: u16 = 1024;

/// A method as far as frames need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    /// `Lpkg/Class;::method`, the form that flame graphs of Java have had since perf-map-agent.
    pub(crate) name: Arc<str>,
    /// Where its byte code is.
    pub(crate) code: std::ops::Range<u64>,
}

/// The method at an address; `None` if there is none, or its memory cannot be read.
pub(crate) fn method(address: u64, layout: &Layout, memory: &Blocks<'_>) -> Option<Method> {
    let of = &layout.method;
    let at = |base: u64, offset: u32| base.checked_add(offset.into());
    let pointer = |base, offset| {
        let pointer = memory.word(at(base, offset)?)?;
        (pointer != 0 && pointer.is_multiple_of(8)).then_some(pointer)
    };
    if !address.is_multiple_of(8) {
        return None;
    }
    let fixed = pointer(address, of.fixed)?;
    let pool = pointer(fixed, of.constants)?;
    let entries = memory.half(at(pool, of.pool_len)?)?;
    let index = u32::from(memory.short(at(fixed, of.name)?)?);
    if index == 0 || index >= entries {
        return None;
    }
    let symbol = |address: u64| {
        let len = memory.short(at(address, of.symbol_len)?)?;
        let mut text = vec![0; usize::from((1..=LONGEST).contains(&len).then_some(len)?)];
        let is_read = memory.fill(at(address, of.symbol)?, &mut text);
        let text = String::from_utf8(text).ok().filter(|_| is_read)?;
        (!text.chars().any(|c| c.is_control() || c.is_whitespace())).then_some(text)
    };
    let name = symbol(pointer(at(pool, of.pool)?, index * 8)?)?;
    let class = symbol(pointer(pointer(pool, of.pool_holder)?, of.class_name)?)?;
    let code = at(fixed, of.code)?;
    let len = memory.short(at(fixed, of.code_size)?)?;
    Some(Method {
        name: full_name(&class, &name).into(),
        code: code..code.checked_add(len.into())?,
    })
}

/// Hidden classes lose their address, which is another one in each run.
fn full_name(class: &str, method: &str) -> String {
    let shown = ["+0x", "/0x", ".0x"]
        .iter()
        .find_map(|mark| Some(class.split_once(mark)?.0))
        .unwrap_or(class);
    format!("L{shown};::{method}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_form_of_java_flame_graphs() {
        let cases = [
            ("java/lang/String", "<init>", "Ljava/lang/String;::<init>"),
            ("Work$$Lambda$14+0x0000000800c03000", "run", "LWork$$Lambda$14;::run"),
            ("Work$$Lambda+0x00007f8a2c001000", "run", "LWork$$Lambda;::run"),
            ("a/b/C$D", "get", "La/b/C$D;::get"),
        ];
        for (class, method, expect) in cases {
            assert_eq!(full_name(class, method), expect);
        }
    }
}
