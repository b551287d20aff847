//! A page over a folder of pictures: a thumbnail of each, its title and what it weighs.

use std::fmt::Write as _;
use std::time::SystemTime;

use flame_message::group_thousands;

/// What tells a page of flame's from another one.
pub const INDEX_MARK: &str = r#"<meta name="generator" content="flame">"#;
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
#[derive(Clone, Debug)]
pub struct IndexEntry {
    /// The name of its file.
    pub name: String,
    link: String,
    /// When it was written.
    pub modified: SystemTime,
    title: String,
    /// Of the root's tooltip, `all (1,234 samples, 100%)`, the amount.
    total: String,
}

impl IndexEntry {
    /// What the start of a picture says, which has a file of that name.
    pub fn of(name: &[u8], modified: SystemTime, start: &str) -> IndexEntry {
        let text = |from: &str| -> String {
            let title = from.split_once("<title>").map_or("", |(_, rest)| rest);
            title.split('<').next().unwrap_or_default().to_owned()
        };
        let boxes = start.split_once(r#"id="frames""#).map_or("", |(_, rest)| rest);
        let root = text(boxes);
        let numbers = root.split_once('(').map_or("", |(_, numbers)| numbers);
        let total = numbers.split(", ").next().unwrap_or_default().to_owned();
        IndexEntry {
            name: String::from_utf8_lossy(name).into_owned(),
            link: link_to(name),
            modified,
            title: text(start),
            total,
        }
    }
}

/// The page of these pictures, in their order.
pub fn index_page(entries: &[IndexEntry]) -> String {
    let number = group_thousands(entries.len() as u64);
    let heading = if entries.len() == 1 { "1 profile" } else { &format!("{number} profiles") };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">{INDEX_MARK}\n\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{heading}</title>\n\
         <style>\n{STYLE}</style></head><body><h1>{heading}</h1><main>\n"
    );
    for IndexEntry { name, link, title, total, .. } in entries {
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
