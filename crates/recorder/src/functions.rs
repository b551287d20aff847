//! Functions of programs and libraries as events: `-e uprobe:FILE:FUNCTION`.

use std::path::Path;

use flame_image::ImageFile;
use flame_sampler::{EventType, ParseEventError, near_names};

/// What an event of this kind begins with.
const PREFIX: &str = "uprobe:";

/// The event that a text names: a function, or any that the sampler knows.
///
/// # Errors
/// There is none of that name, in words for people.
pub fn parse_event(text: &str) -> Result<EventType, String> {
    match function(text) {
        Some(event) => event,
        None => text.parse().map_err(|error: ParseEventError| error.to_string()),
    }
}

/// The event that such a text names; `None` where it is of another kind.
fn function(text: &str) -> Option<Result<EventType, String>> {
    let (file, function) = match text.strip_prefix(PREFIX)?.rsplit_once(':') {
        Some((file, function)) if !file.is_empty() && !function.is_empty() => (file, function),
        _ => return Some(Err("a function is named uprobe:FILE:FUNCTION".to_owned())),
    };
    let path = Path::new(file);
    let image = match ImageFile::open(path) {
        Ok(image) => image,
        Err(error) => return Some(Err(format!("{file}: {error}"))),
    };
    let event = calls_of(text, function, path, &image);
    Some(event.ok_or_else(|| {
        let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        // Functions of other libraries have no code here.
        let mut all: Vec<String> = image.symbols().iter().map(|(_, bytes)| name(bytes)).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|name| name != function);
        format!("{file} has no function symbol '{function}'{}", near_names(function, &all))
    }))
}

/// Calls of a function of an image, which the kernel finds at `path`; `None` where it has no such
/// function.
pub(crate) fn calls_of(
    name: &str,
    function: &str,
    path: &Path,
    image: &ImageFile,
) -> Option<EventType> {
    let start = image.offset_of_function(function)?;
    Some(EventType::function(name, path, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_function_says_why() {
        assert_eq!(function("cycles"), None);
        for (text, why) in [
            ("uprobe:", "uprobe:FILE:FUNCTION"),
            ("uprobe:/bin/true", "uprobe:FILE:FUNCTION"),
            ("uprobe:/nonexistent:main", "cannot open"),
            ("uprobe:/etc/passwd:main", "not a readable ELF"),
            ("uprobe:/proc/self/exe:no_such_function_at_all", "has no function symbol"),
            ("uprobe:/proc/self/exe:mian", "'mian'; near it are main"),
        ] {
            let message = function(text).unwrap().unwrap_err();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
