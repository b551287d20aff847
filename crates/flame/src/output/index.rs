//! A page over a folder of pictures: a thumbnail of each, its title and what it weighs, the newest
//! first. Pictures of other tools are left out, and said.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flame_render::group_thousands;

use super::foreign::is_flame_svg;
use super::picture::cannot;
use super::{Written, place};
use crate::message::Failure;
use crate::privileges;

const NAME: &str = "index.html";
/// What tells a page of flame's from another one.
const MARK: &str = r#"<meta name="generator" content="flame">"#;
/// Until here every picture has its title and the first of its boxes, whatever its style sheet and
/// colours are.
const START: u64 = 1 << 20;
const STYLE: &str = "\
:root { color-scheme: light dark }
body { margin: 24px; font: 13px Verdana, 'DejaVu Sans', sans-serif }
h1 { font-size: 17px; margin: 0 0 16px }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(280px, 1fr)); gap: 16px }
a { display: flex; flex-direction: column; border: 1px solid #8c959f66; border-radius: 6px;
  overflow: hidden; color: inherit; text-decoration: none }
a:hover, a:focus-visible { border-color: #5b93e0; box-shadow: 0 0 0 1px #5b93e0; outline: none }
img { width: 100%; height: 180px; object-fit: cover; object-position: left bottom; background: #fff }
b, span { margin: 8px 10px 0; overflow-wrap: anywhere }
span { margin-top: 4px; opacity: .75 }
span:last-child { margin-bottom: 10px }
";

/// What is known of a picture; texts are escaped as they stand in its file.
struct Entry {
    name: String,
    link: String,
    modified: SystemTime,
    title: String,
    /// Of the root's tooltip, `all (1,234 samples, 100%)`, the amount.
    total: String,
}

/// Writes the page into a folder. Also says how many `.svg` there are no pictures of flame's.
///
/// # Errors
/// When the folder cannot be read, has no picture, or has a page of somebody else.
pub(crate) fn write_index(folder: &Path, force: bool) -> Result<(Written, usize), Failure> {
    privileges::as_user(|| write(folder, force))
}

fn write(folder: &Path, force: bool) -> Result<(Written, usize), Failure> {
    let (mut entries, mut others) = (Vec::new(), 0);
    for file in fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))? {
        let path = file.map_err(|error| cannot("read", folder, &error))?.path();
        if path.extension().is_none_or(|ending| ending != "svg") {
            continue;
        }
        match read(&path).map_err(|error| cannot("read", &path, &error))? {
            Some(entry) => entries.push(entry),
            None => others += 1,
        }
    }
    if entries.is_empty() {
        let what = format!("no picture of flame's in {}", folder.display());
        return Err(Failure::new(what).or_try("flame render out.folded -o DIR/out.svg"));
    }
    entries.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.name.cmp(&b.name)));
    let path = folder.join(NAME);
    if !force && is_foreign(&path) {
        let what = format!("{} is not flame's", path.display());
        return Err(Failure::new(what).or_try("--force, to overwrite it"));
    }
    let page = page(&entries);
    let mut fill = |out: &mut dyn Write| out.write_all(page.as_bytes());
    let written = place::replace(&path, &mut fill);
    Ok((written.map_err(|error| cannot("write", &path, &error))?, others))
}

fn is_foreign(path: &PathBuf) -> bool {
    match fs::read(path) {
        Ok(bytes) => !String::from_utf8_lossy(&bytes).contains(MARK),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// What the start of a picture says; `None` when it is not one of flame's.
fn read(path: &Path) -> io::Result<Option<Entry>> {
    let file = fs::File::open(path)?;
    let modified = file.metadata()?.modified()?;
    let mut start = Vec::new();
    file.take(START).read_to_end(&mut start)?;
    let name = path.file_name().unwrap_or_default();
    let (name, link) = (name.to_string_lossy().into_owned(), link_to(name.as_bytes()));
    if !is_flame_svg(&start) {
        return Ok(None);
    }
    let start = String::from_utf8_lossy(&start);
    let text = |from: &str| -> String {
        let title = from.split_once("<title>").map_or("", |(_, rest)| rest);
        title.split('<').next().unwrap_or_default().to_owned()
    };
    let boxes = start.split_once(r#"id="frames""#).map_or("", |(_, rest)| rest);
    let root = text(boxes);
    let numbers = root.split_once('(').map_or("", |(_, numbers)| numbers);
    let total = numbers.split(", ").next().unwrap_or_default().to_owned();
    Ok(Some(Entry { name, link, modified, title: text(&start), total }))
}

fn page(entries: &[Entry]) -> String {
    let number = group_thousands(entries.len() as u64);
    let heading = if entries.len() == 1 { "1 profile" } else { &format!("{number} profiles") };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">{MARK}\n\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{heading}</title>\n\
         <style>\n{STYLE}</style></head><body><h1>{heading}</h1><main>\n"
    );
    for Entry { name, link, title, total, .. } in entries {
        let shown = escape(name);
        let _ = writeln!(
            page,
            "<a href=\"{link}\"><img src=\"{link}\" alt=\"\" loading=\"lazy\"><b>{title}</b>\
             <span>{total}</span><span>{shown}</span></a>"
        );
    }
    page + "</main></body></html>\n"
}

/// The name of a file as a link to it in the same folder.
fn link_to(name: &[u8]) -> String {
    let mut link = String::from("./");
    for byte in name.iter().copied() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                link.push(char::from(byte));
            }
            _ => {
                let _ = write!(link, "%{byte:02X}");
            }
        }
    }
    link
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
