use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::Value;

use super::EXACT;
use crate::svg::{SvgConfig, write_svg};
use crate::test_trees::tree_of;

fn data_of(stacks: &[(&str, u64)]) -> (String, Value) {
    let config = SvgConfig { title: "T&".to_owned(), ..SvgConfig::default() };
    let mut out = Vec::new();
    write_svg(&tree_of(stacks), &config, &mut out).unwrap();
    let svg = String::from_utf8(out).unwrap();
    let (_, data) = svg.split_once(r#"<metadata id="flame-data">"#).unwrap();
    let (data, _) = data.split_once("</metadata>").unwrap();
    (data.to_owned(), serde_json::from_str(data).unwrap())
}

fn column(data: &Value, name: &str) -> Vec<u8> {
    let packed = STANDARD.decode(data["columns"][name][1].as_str().unwrap()).unwrap();
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    assert_eq!(data["columns"][name][0], bytes.len());
    bytes
}

#[test]
fn columns_follow_the_nodes_in_pre_order() {
    let stacks = [("c;b<>;\"x", 4), ("c;b<>", 2), ("d", 300), ("c;e;f;b<>", 1)];
    let (text, data) = data_of(&stacks);
    assert!(!text.contains(['<', '>', '&']), "{text}");
    assert_eq!((&data["count"], &data["labels"], &data["big"]), (&8.into(), &7.into(), &0.into()));
    assert_eq!(column(&data, "names"), b"all\nc\nb<>\n\"x\ne\nf\nd\n");
    assert_eq!(column(&data, "label"), [0, 0, 0, 0, 0, 0, 3, 0]);
    assert_eq!(column(&data, "up"), [0, 0, 0, 0, 2, 0, 0, 4]);
    assert_eq!(column(&data, "self"), [0, 0, 2, 4, 0, 0, 1, 0xac, 2]);
    // `all` is of the first colour, and its edge is not dashed.
    assert_eq!(column(&data, "paint")[0], 0);
    assert_eq!(column(&data, "paint").len(), 7);
}

#[test]
fn weights_that_doubles_cannot_hold_are_announced() {
    assert_eq!(data_of(&[("a", EXACT - 1), ("b", 1)]).1["big"], 0);
    let (_, data) = data_of(&[("a", EXACT), ("b", 1)]);
    assert_eq!(data["big"], 1);
    let expect = [0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 1];
    assert_eq!(column(&data, "self"), expect);
}

#[test]
fn labels_of_more_than_a_byte_are_in_planes() {
    let stacks: Vec<(String, u64)> = (0..300).map(|n| (format!("t;f{n:03};t"), 1)).collect();
    let stacks: Vec<(&str, u64)> = stacks.iter().map(|(stack, n)| (stack.as_str(), *n)).collect();
    let (_, data) = data_of(&stacks);
    let labels = column(&data, "label");
    assert_eq!((data["count"].as_u64(), labels.len()), (Some(602), 2 * 602));
    // all, t, f000, t, f001, t: the inner `t` is code, so another name than the thread's.
    assert_eq!((&labels[..6], &labels[602..608]), (&[0, 0, 0, 0, 0, 4][..], &[0; 6][..]));
}

#[test]
fn a_tree_without_weight_has_empty_columns() {
    let (_, data) = data_of(&[]);
    assert_eq!((&data["count"], &data["labels"]), (&0.into(), &0.into()));
    assert_eq!(column(&data, "names"), b"");
}
