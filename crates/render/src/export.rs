//! A call tree for other programs and for comments: JSON, CSV, Markdown.

use std::io::{self, Write};

use flame_message::{ValueScale, clean_name, format_share};
use flame_profile::{CallTree, FrameKind, Label, Weight, functions, is_direction_mark};

use crate::text::{Report, TextConfig, write_call_tree};

/// Writes one JSON object: `value` (name, unit, decimal places), `total`, `functions` with self
/// and total weight, and `nodes` in pre-order, each with the position of its parent in that list.
///
/// # Errors
/// Those of `out`.
pub fn write_json(tree: &CallTree, out: &mut impl Write) -> io::Result<()> {
    let value = tree.value_type();
    write!(out, r#"{{"value":{{"name":{},"unit":{}"#, Json(&value.name), Json(&value.unit))?;
    write!(out, r#","decimals":{}}},"total":{}"#, tree.decimals(), tree.total())?;
    out.write_all(br#","functions":["#)?;
    for (index, share) in functions(tree).iter().enumerate() {
        let label = &tree.labels()[share.label.index()];
        write!(out, "{}{{", comma(index))?;
        write_label(label, out)?;
        write!(out, r#","self":{},"total":{}}}"#, share.self_weight, share.total)?;
    }
    out.write_all(br#"],"nodes":["#)?;
    for (index, node) in tree.nodes().iter().enumerate() {
        write!(out, "{}{{", comma(index))?;
        write_label(tree.label(node), out)?;
        match index {
            0 => out.write_all(br#","parent":null"#)?,
            _ => write!(out, r#","parent":{}"#, node.parent.index())?,
        }
        write!(out, r#","self":{},"total":{}"#, node.self_weight, node.total)?;
        if let Some(before) = tree.before().and_then(|before| before.get(index)) {
            let (own, total) = (before.self_weight, before.total);
            write!(out, r#","self_before":{own},"total_before":{total}"#)?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"]}\n")
}

fn write_label(label: &Label, out: &mut impl Write) -> io::Result<()> {
    write!(out, r#""name":{},"kind":"{}""#, Json(&label.name), label.kind.word())
}

/// Writes the functions as comma-separated values (RFC 4180) with a line of headings.
///
/// A name that a spreadsheet would take for a formula, since it begins with `=`, `+`, `-` or `@`, has
/// a `'` before it, which spreadsheets take for the sign of text.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(tree: &CallTree, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"self,self_share,total,total_share,kind,function\r\n")?;
    for share in functions(tree) {
        let label = &tree.labels()[share.label.index()];
        for weight in [share.self_weight, share.total] {
            write_decimal(weight, tree.decimals(), out)?;
            write!(out, ",{:.6},", weight.share_of(tree.total()))?;
        }
        let name = clean_name(&label.name).replace('"', "\"\"");
        let sign = if name.trim_start().starts_with(['=', '+', '-', '@']) { "'" } else { "" };
        write!(out, "{},\"{sign}{name}\"\r\n", label.kind.word())?;
    }
    Ok(())
}

/// A weight to its last digit, which floating point does not keep beyond 2^53.
fn write_decimal(weight: Weight, decimals: u32, out: &mut impl Write) -> io::Result<()> {
    let (unit, places) = (10_u64.saturating_pow(decimals), decimals as usize);
    match decimals {
        0 => write!(out, "{weight}"),
        _ => write!(out, "{}.{:0places$}", weight.0 / unit, weight.0 % unit),
    }
}

/// Writes a comment for a code review: the functions as a table, the call tree folded away. A
/// [`Report::Flat`] has all functions and no tree.
///
/// # Errors
/// Those of `out`.
pub fn write_markdown(
    tree: &CallTree,
    config: &TextConfig,
    out: &mut impl Write,
) -> io::Result<()> {
    let scale = ValueScale::of_tree(tree, config.count_name.as_deref());
    for (index, line) in config.header.iter().enumerate() {
        writeln!(out, "{}{}\n", if index == 0 { "### " } else { "" }, markdown_text(line))?;
    }
    writeln!(out, "{} in all\n", markdown_text(&scale.amount(tree.total())))?;
    writeln!(out, "| self | | total | | function |\n|---:|---:|---:|---:|---|")?;
    let is_flat = config.report == Report::Flat;
    let top = if is_flat { usize::MAX } else { config.top };
    for share in functions(tree).iter().take(top) {
        for weight in [share.self_weight, share.total] {
            let of_all = format_share(weight, tree.total());
            write!(out, "| {} | {} ", scale.number(weight), markdown_text(&of_all))?;
        }
        let label = &tree.labels()[share.label.index()];
        let note = match label.kind {
            FrameKind::User | FrameKind::Mark => String::new(),
            other => format!(" *({})*", other.word()),
        };
        writeln!(out, "| {}{note} |", markdown_text(&label.name))?;
    }
    if is_flat {
        return Ok(());
    }
    writeln!(out, "\n<details><summary>Call tree</summary>\n\n<pre>")?;
    let mut text = Vec::new();
    write_call_tree(tree, config, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    write!(out, "{text}</pre>\n\n</details>\n")
}

/// A name as Markdown shows it and does not understand it, without control characters.
pub fn markdown_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in clean_name(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '@' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

/// A JSON string.
struct Json<'t>(&'t str);

impl std::fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() || is_direction_mark(c) => {
                    write!(f, "\\u{:04x}", u32::from(c))?;
                }
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trees::tree_of;

    const STACKS: &[(&str, u64)] = &[("t;a\"|<b>;c", 3), ("t;a\"|<b>", 1), ("t;r\u{1}_[k]", 4)];

    fn written(write: impl Fn(&CallTree, &mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&tree_of(STACKS), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_has_functions_and_nodes() {
        let text = written(write_json);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["total"], 8);
        assert_eq!(json["value"]["name"], "samples");
        let functions: Vec<_> = json["functions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| (f["name"].as_str().unwrap(), f["self"].as_u64(), f["total"].as_u64()))
            .collect();
        let expect =
            [("r\u{1}", Some(4), Some(4)), ("c", Some(3), Some(3)), ("a\"|<b>", Some(1), Some(4))];
        assert_eq!(functions, expect);
        let nodes = json["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 5);
        assert!(nodes[0]["parent"].is_null());
        assert_eq!((&nodes[3]["parent"], &nodes[4]["parent"]), (&2.into(), &1.into()));
        assert_eq!(nodes[4]["kind"], "kernel");
    }

    #[test]
    fn csv_quotes_names() {
        let text = written(write_csv);
        let expect = "self,self_share,total,total_share,kind,function\r\n\
                      4,0.500000,4,0.500000,kernel,\"r␁\"\r\n\
                      3,0.375000,3,0.375000,user,\"c\"\r\n\
                      1,0.125000,4,0.500000,user,\"a\"\"|<b>\"\r\n";
        assert_eq!(text, expect);
    }

    #[test]
    fn spreadsheets_take_names_for_text() {
        let names = ["=cmd|' /C calc'!A0", "+[NSString new]", "-[Work alpha]", "@plt", "a=b"];
        let stacks = names.map(|name| format!("t;{name}"));
        let stacks: Vec<(&str, u64)> = stacks.iter().map(|stack| (&**stack, 1)).collect();
        let mut out = Vec::new();
        write_csv(&tree_of(&stacks), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let cells: Vec<&str> =
            text.lines().skip(1).map(|line| line.rsplit_once(",\"").unwrap().1).collect();
        assert!(cells.iter().all(|cell| cell.starts_with(['\'', 'a', 't'])), "{cells:?}");
        assert!(cells.contains(&"'=cmd|' /C calc'!A0\""), "{cells:?}");
    }

    #[test]
    fn marks_of_direction_are_escapes_in_json() {
        let mut out = Vec::new();
        write_json(&tree_of(&[("t;gpj.\u{202e}exe\u{2066}", 1)]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""gpj.\u202eexe\u2066""#), "{text}");
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["functions"][0]["name"], "gpj.\u{202e}exe\u{2066}");
    }

    #[test]
    fn markdown_shows_names_and_does_not_read_them() {
        let config = TextConfig { header: vec!["a_b".to_owned()], ..TextConfig::default() };
        let text = written(|tree, out| write_markdown(tree, &config, out));
        assert!(text.starts_with("### a\\_b\n\n8 samples in all\n\n| self |"), "{text}");
        assert!(text.contains("| 4 | 50.00% | 4 | 50.00% | r␁ *(kernel)* |\n"), "{text}");
        assert!(text.contains("| 1 | 12.50% | 4 | 50.00% | a\"\\|&lt;b&gt; |\n"), "{text}");
        assert!(text.contains("<details>") && text.ends_with("</pre>\n\n</details>\n"));
        assert!(text.contains("a\"|&lt;b&gt;"), "{text}");
        let flat = TextConfig { report: Report::Flat, top: 1, ..config };
        let text = written(|tree, out| write_markdown(tree, &flat, out));
        assert!(text.ends_with("| a\"\\|&lt;b&gt; |\n"), "{text}");
    }

    #[test]
    fn csv_has_the_last_digit_of_every_weight() {
        let written = |stacks: &[(&str, u64)], factor: (u64, u32)| {
            let mut tree = tree_of(stacks);
            tree.scale(factor.0, factor.1).unwrap();
            let mut out = Vec::new();
            write_csv(&tree, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            text.lines().nth(1).unwrap().split(',').next().unwrap().to_owned()
        };
        assert_eq!(written(&[("t;f", u64::MAX - 1)], (1, 0)), "18446744073709551614");
        assert_eq!(written(&[("t;f", 9_007_199_254_740_993)], (1, 2)), "90071992547409.93");
        assert_eq!(written(&[("t;f", 1_005)], (1, 3)), "1.005");
    }
}
