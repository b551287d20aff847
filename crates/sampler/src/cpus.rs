//! CPU lists as the kernel writes and users type them: `0-3,8`.

use std::fs;

use flame_profile::Cpu;

use crate::error::SamplerError;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// More CPUs than any kernel supports: a bound for what a list may ask for.
const MAX_CPU: u32 = 8192;

/// The CPUs of a list such as `0-3,8`, ascending and each once; `None` when it is none.
pub fn parse_cpu_list(text: &str) -> Option<Vec<Cpu>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MAX_CPU {
            return None;
        }
        cpus.extend((first..=last).map(Cpu));
    }
    cpus.sort();
    cpus.dedup();
    Some(cpus)
}

/// The CPUs that are online now.
///
/// # Errors
/// [`SamplerError::Io`] when the kernel's list cannot be read.
pub(crate) fn online() -> Result<Vec<Cpu>, SamplerError> {
    let text = fs::read_to_string(ONLINE)
        .map_err(|source| SamplerError::Io { doing: format!("read {ONLINE}"), source })?;
    Ok(parse_cpu_list(&text).unwrap_or_else(|| vec![Cpu(0)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&[u32]>) {
        let cpus = parse_cpu_list(text);
        let numbers = cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>());
        assert_eq!(numbers.as_deref(), expect, "{text:?}");
    }

    #[test]
    fn lists_have_numbers_and_ranges() {
        check("0\n", Some(&[0]));
        check("2-4,0,3", Some(&[0, 2, 3, 4]));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "a", "3-1", "1,", "0-999999999", "-1"] {
            check(text, None);
        }
    }
}
