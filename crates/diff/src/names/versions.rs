//! Versions and hashes of builds taken out of paths and of names of libraries.

use super::run;

/// Versions in paths and in names of libraries: `libc-2.31.so`, `libssl.so.1.1`, `serde-1.0.130/`,
/// `python3.11`.
pub(super) fn without_versions(name: &str) -> String {
    if !name.contains('/') && !name.contains(".so") {
        return name.to_owned();
    }
    let mut common = String::with_capacity(name.len());
    for (index, part) in name.split('/').enumerate() {
        common.push_str(if index > 0 { "/" } else { "" });
        common.push_str(&without_version(part));
    }
    common
}

/// One part of a path.
fn without_version(part: &str) -> String {
    let part = without_hash(part);
    let mut common = String::with_capacity(part.len());
    let mut rest = &*part;
    while let Some((start, end)) = version(rest) {
        common.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    common + rest
}

/// What a packager or bundler made of a file's content: `main.3f2a1b4c.js`, the 32 letters of a Nix
/// store, the commit in `/rustc/59807616e1fa.../library`.
fn without_hash(part: &str) -> String {
    /// Shorter ones are words and numbers.
    const LEAST: usize = 8;
    /// A Nix store's hashes have other letters, too.
    const NIX: usize = 32;
    let is_hash = |word: &str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_mixed = digits > 0 && digits < word.len();
        let of = |is_letter: fn(&u8) -> bool| word.bytes().all(|byte| is_letter(&byte));
        let is_hex = word.len() >= LEAST && of(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_nix = word.len() == NIX && of(|b| matches!(b, b'0'..=b'9' | b'a'..=b'z'));
        is_mixed && (is_hex || is_nix)
    };
    let words = part.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let kept = words.map(|word| {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_hash(bare) { &word[bare.len()..] } else { word }
    });
    kept.collect()
}

/// Where the first version in a part of a path starts, with what ties it to the name, and ends.
fn version(part: &str) -> Option<(usize, usize)> {
    let bytes = part.as_bytes();
    let is_version = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    // The dot before an ending is not the version's.
    let end = |start: usize| {
        let digits = &part[start..start + run(&part[start..], is_version)];
        start + digits.trim_end_matches('.').len()
    };
    let of_library = part.find(".so.").map(|at| (at + 3, end(at + 4)));
    let of_library = of_library.filter(|(start, end)| start + 1 < *end);
    let starts =
        (1..bytes.len()).filter(|at| bytes[*at].is_ascii_digit() && !is_version(bytes[at - 1]));
    let tied = |start: usize| {
        let head = part[..start].strip_suffix('v').unwrap_or(&part[..start]);
        let end = end(start);
        match head.strip_suffix('-') {
            Some(head) => Some((head.len(), end)),
            None => part[start..end].contains('.').then_some((start, end)),
        }
    };
    starts.filter_map(tied).next().into_iter().chain(of_library).min()
}

#[cfg(test)]
mod tests {
    use super::super::Names;

    #[test]
    fn versions_in_paths_go() {
        let cases = [
            ("[libc-2.31.so]", "[libc.so]"),
            ("[libssl.so.1.1]", "[libssl.so]"),
            ("/usr/lib/python3.11/json/decoder.py", "/usr/lib/python/json/decoder.py"),
            ("node_modules/left-pad-1.3.0/index.js", "node_modules/left-pad/index.js"),
            ("/opt/app-v2/lib64/x.c", "/opt/app/lib64/x.c"),
            ("/src/utf8.c", "/src/utf8.c"),
            ("v2.parse", "v2.parse"),
            ("[libfoo.so.1.2.3+0x12]", "[libfoo.so+0x...]"),
            ("JS:work /srv/app-1.2.0/main.3f2a1b4c.js", "JS:work /srv/app/main..js"),
            (
                "/nix/store/a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6-zlib-1.3/lib/x.c",
                "/nix/store/-zlib/lib/x.c",
            ),
            (
                "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/x.rs",
                "/rustc//library/x.rs",
            ),
            ("/src/decade/20261121/facade.c", "/src/decade/20261121/facade.c"),
            ("/src/deadbeef/0a1b2c3/x.c", "/src/deadbeef/0a1b2c3/x.c"),
            ("[libfoo.so.debug]", "[libfoo.so.debug]"),
        ];
        for (name, expect) in cases {
            assert_eq!(Names::AcrossBuilds.common(name), expect, "{name}");
        }
    }
}
