//! Frame kinds in pprof, which has none: a number in a field of our own, and names of mappings.
//!
//! The number is exact. The mapping names are what other tools show, and what is left of the kind
//! when another tool has rewritten the file.

use flame_profile::FrameKind;

/// The number of a kind in a function of a file that flame wrote; never 0.
pub(super) fn code(kind: FrameKind) -> u32 {
    match kind {
        FrameKind::User => 1,
        FrameKind::Kernel => 2,
        FrameKind::Inlined => 3,
        FrameKind::Jit => 4,
        FrameKind::Mark => 5,
        FrameKind::Library => 6,
        FrameKind::Waker => 7,
        FrameKind::Waiting => 8,
        FrameKind::Script => 9,
    }
}

/// The kind of a number; `None` for 0 and for numbers of the future.
pub(super) fn from_code(code: u32) -> Option<FrameKind> {
    match code {
        1 => Some(FrameKind::User),
        2 => Some(FrameKind::Kernel),
        3 => Some(FrameKind::Inlined),
        4 => Some(FrameKind::Jit),
        5 => Some(FrameKind::Mark),
        6 => Some(FrameKind::Library),
        7 => Some(FrameKind::Waker),
        8 => Some(FrameKind::Waiting),
        9 => Some(FrameKind::Script),
        _ => None,
    }
}

/// The kinds that have a mapping where a location has no image, in the order they are written.
pub(super) const WITH_MAPPING: [FrameKind; 5] =
    [FrameKind::Kernel, FrameKind::Jit, FrameKind::Inlined, FrameKind::Script, FrameKind::Mark];

/// The file name of the mapping that stands for "no image"; `None` = the location has no mapping.
///
/// Names in brackets tell pprof that there is no file to look symbols up in.
pub(super) fn mapping_name(kind: FrameKind) -> Option<&'static str> {
    match kind {
        FrameKind::User | FrameKind::Library | FrameKind::Waker => None,
        FrameKind::Kernel | FrameKind::Waiting => Some("[kernel]"),
        FrameKind::Jit => Some("[jit]"),
        FrameKind::Inlined => Some("[inlined]"),
        FrameKind::Script => Some("[script]"),
        FrameKind::Mark => Some("[mark]"),
    }
}

/// Whether a mapping of that name stands for "no image" when nothing else is known of it.
pub(super) fn is_mapping_name(file: &str) -> bool {
    WITH_MAPPING.iter().any(|kind| mapping_name(*kind) == Some(file))
}

/// The kind of the outermost function at a location, from the file name of its mapping.
pub(super) fn of_mapping(file: &str) -> FrameKind {
    if let Some(kind) = WITH_MAPPING.iter().find(|kind| mapping_name(**kind) == Some(file)) {
        return *kind;
    }
    let base = file.rsplit('/').next().unwrap_or(file);
    let is_module = base.ends_with(".ko") || base.contains(".ko.");
    if file.starts_with("[kernel") || base.starts_with("vmlinux") || is_module {
        FrameKind::Kernel
    } else if file == "//anon" || (base.starts_with("perf-") && base.ends_with(".map")) {
        FrameKind::Jit
    } else {
        FrameKind::User
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_code() {
        let kinds = [
            FrameKind::User,
            FrameKind::Kernel,
            FrameKind::Inlined,
            FrameKind::Jit,
            FrameKind::Mark,
            FrameKind::Library,
            FrameKind::Waker,
            FrameKind::Waiting,
            FrameKind::Script,
        ];
        for kind in kinds {
            assert_eq!(from_code(code(kind)), Some(kind));
        }
        assert_eq!((from_code(0), from_code(10)), (None, None));
    }

    #[test]
    fn mapping_names_of_other_tools_tell_the_kind() {
        let check = |file, kind| assert_eq!(of_mapping(file), kind, "{file}");
        check("[kernel.kallsyms]_text", FrameKind::Kernel);
        check("/usr/lib/debug/boot/vmlinux-6.1.0-18-amd64", FrameKind::Kernel);
        check("/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz", FrameKind::Kernel);
        check("/tmp/perf-4242.map", FrameKind::Jit);
        check("//anon", FrameKind::Jit);
        check("[vdso]", FrameKind::User);
        check("/usr/lib/libc.so.6", FrameKind::User);
        check("", FrameKind::User);
    }
}
