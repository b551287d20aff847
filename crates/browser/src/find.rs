//! Finds a browser, or says that tests must do without.

use std::ffi::OsString;
use std::path::PathBuf;

/// Names the browser to use instead of the first one on the path.
pub const ENV_BROWSER: &str = "FLAME_CHROMIUM";
/// Names the Firefox to use.
const ENV_FIREFOX: &str = "FLAME_FIREFOX";
/// When set to 1, a missing browser fails the tests that need one.
pub const ENV_REQUIRE: &str = "FLAME_REQUIRE_BROWSER";
/// When set to 1, no test opens a browser: `cargo xtask test` is quick.
const ENV_SKIP: &str = "FLAME_SKIP_LIVE";

const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser that [`ENV_BROWSER`] names, or else the first of `chromium`, `chromium-browser` and
/// `google-chrome` on the path.
pub fn find_browser() -> Option<PathBuf> {
    find_in(std::env::var_os(ENV_BROWSER), std::env::var_os("PATH"), &PROGRAMS)
}

/// Firefox for a test, or `FLAME_FIREFOX`'s. Without one the test should return: this has said
/// `SKIP firefox`.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn firefox_or_skip() -> Option<PathBuf> {
    if std::env::var_os(ENV_SKIP).is_some_and(|value| value == "1") {
        eprintln!("SKIP firefox: {ENV_SKIP} is 1");
        return None;
    }
    let named = std::env::var_os(ENV_FIREFOX);
    let found = find_in(named, std::env::var_os("PATH"), &["firefox-esr", "firefox"]);
    if found.is_none() {
        eprintln!(
            "SKIP firefox: none found; install firefox-esr, or set {ENV_FIREFOX} to its path"
        );
    }
    found
}

fn find_in(named: Option<OsString>, path: Option<OsString>, programs: &[&str]) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(PathBuf::from(named)).filter(|program| program.is_file());
    }
    let directories: Vec<PathBuf> = std::env::split_paths(&path?).collect();
    programs
        .iter()
        .flat_map(|program| directories.iter().map(move |directory| directory.join(program)))
        .find(|program| program.is_file())
}

/// The browser for a test. Without one the test should return: this has said `SKIP browser`.
///
/// # Panics
/// When there is no browser and [`ENV_REQUIRE`] is 1.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn find_or_skip() -> Option<PathBuf> {
    if std::env::var_os(ENV_SKIP).is_some_and(|value| value == "1") {
        eprintln!("SKIP browser: {ENV_SKIP} is 1");
        return None;
    }
    let found = find_browser();
    if found.is_none() {
        let required = std::env::var_os(ENV_REQUIRE).is_some_and(|value| value == "1");
        assert!(!required, "{}, and {ENV_REQUIRE} is 1", crate::Error::NotFound);
        eprintln!("SKIP browser: {}", crate::Error::NotFound);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_browser_that_is_not_there_is_not_replaced_by_another() {
        let path = Some(OsString::from("/bin:/usr/bin"));
        assert_eq!(find_in(Some("/nonexistent/chromium".into()), path, &PROGRAMS), None);
    }

    #[test]
    fn an_empty_path_holds_no_browser() {
        assert_eq!(find_in(None, Some("/nonexistent".into()), &PROGRAMS), None);
        assert_eq!(find_in(None, None, &PROGRAMS), None);
    }

    #[test]
    fn a_named_browser_is_taken_as_it_is() {
        let program = std::env::current_exe().unwrap();
        assert_eq!(find_in(Some(program.clone().into()), None, &PROGRAMS), Some(program));
    }
}
