//! Whether kernel functions have names.

use std::fs::File;
use std::io::{self, Read};

use nix::unistd::Uid;

use flame_sampler::kptr_restrict;

use crate::check::Check;
use crate::rights::{by_root, more_rights, paranoid};
use flame_message::reason;

const KALLSYMS: &str = "/proc/kallsyms";

/// Enough lines of kallsyms for an address that is not zero: the first may be offsets of variables
/// that each CPU has.
const PROBED_LEN: usize = 1 << 16;

/// The check of kernel symbols.
pub(crate) fn examine() -> Vec<Check> {
    let check = match starts_with_addresses() {
        Ok(true) => Check::ok("kallsyms", "kernel functions have names"),
        Ok(false) => hidden(),
        Err(error) => {
            let why = format!("{KALLSYMS}: {} (CONFIG_KALLSYMS)", reason(&error));
            Check::missing("kallsyms", why)
        }
    };
    vec![check]
}

fn starts_with_addresses() -> io::Result<bool> {
    let mut text = Vec::new();
    File::open(KALLSYMS)?.take(PROBED_LEN as u64).read_to_end(&mut text)?;
    let mut lines = text.split(|byte| *byte == b'\n');
    let nonzero = |byte: &u8| byte.is_ascii_hexdigit() && *byte != b'0';
    Ok(lines.any(|line| line.iter().take_while(|byte| **byte != b' ').any(nonzero)))
}

/// Level 0 shows addresses to whom perf_event_paranoid lets see the kernel, 1 to CAP_SYSLOG, 2 to
/// nobody.
fn hidden() -> Check {
    let level = kptr_restrict();
    let setting = match level {
        Some(0) => paranoid(),
        Some(level) => format!("kernel.kptr_restrict is {level}"),
        None => "there is no kernel.kptr_restrict".to_owned(),
    };
    let why = format!("{setting}: the kernel's addresses are hidden from you");
    let fix = match (level, Uid::effective().is_root()) {
        (Some(2..), true) => by_root("sysctl kernel.kptr_restrict=1"),
        (_, true) => more_rights(),
        (Some(0), false) => by_root("sysctl kernel.perf_event_paranoid=1"),
        (_, false) => by_root("sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"),
    };
    Check::missing("kallsyms", why).fix(fix)
}
