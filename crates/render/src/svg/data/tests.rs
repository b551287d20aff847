use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::Value;

use super::*;
use crate::test_trees::tree_of;

fn data_of(stacks: &[(&str, u64)]) -> (String, Value) {
    let config = SvgConfig { title: "T&".to_owned(), ..SvgConfig::default() };
    let tree = tree_of(stacks);
    let scale = ValueScale::of(tree.value_type());
    let mut out = Vec::new();
    write_data(&tree, &config, Geometry::of(&config), &scale, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let value = serde_json::from_str(&text).unwrap();
    (text, value)
}

fn column(data: &Value, name: &str) -> Vec<u8> {
    let packed = STANDARD.decode(data[name][1].as_str().unwrap()).unwrap();
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    assert_eq!(data[name][0], bytes.len());
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
    let paint = colour_of(&tree_of(&stacks).labels()[0]) as u64 * 2;
    let mut expect = Vec::new();
    column::push(paint, &mut expect);
    assert_eq!(column(&data, "paint")[..2], expect, "of `all`, whose edge is not dashed");
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
fn a_tree_without_weight_has_empty_columns() {
    let (_, data) = data_of(&[]);
    assert_eq!((&data["count"], &data["labels"]), (&0.into(), &0.into()));
    assert_eq!(column(&data, "names"), b"");
}
