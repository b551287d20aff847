use std::sync::Arc;

use flame_profile::ImageAddress;

use super::*;

const KEY: &[u8] = b"0.1.0 abcdef 1000";

/// An index of three units with the tables of two of them and three strings.
fn index() -> Vec<u8> {
    let map = UnitMap::from_parts(vec![0, 100, 200], vec![(0x1000, 2), (0x2000, 0)]).unwrap();
    let tables = [(2, b"second".to_vec()), (0, b"first".to_vec())];
    let strings = ["main", "", "work"].map(|text| Arc::from(text.as_bytes()));
    let contents =
        Contents { key: KEY, map: &map, old: None, new_tables: &tables, new_strings: &strings };
    bytes(&contents)
}

fn bytes(contents: &Contents<'_>) -> Vec<u8> {
    contents.to_parts().unwrap().concat()
}

fn parse(bytes: Vec<u8>) -> Option<IndexFile> {
    IndexFile::parse(SharedBytes::from(bytes), KEY)
}

fn texts(index: &IndexFile) -> Vec<Option<&[u8]>> {
    (0..index.string_count()).map(|id| index.string(id)).collect()
}

fn tables(index: &IndexFile) -> Vec<Option<&[u8]>> {
    (0..4).map(|unit| index.table(unit)).collect()
}

#[test]
fn what_is_written_is_read() {
    let index = parse(index()).unwrap();
    assert_eq!(texts(&index), [Some(&b"main"[..]), Some(b""), Some(b"work")]);
    assert_eq!(index.string(3), None);
    assert_eq!(tables(&index), [Some(&b"first"[..]), None, Some(b"second"), None]);
    let map = index.map().unwrap();
    assert_eq!(map.owner(ImageAddress(0x1800)), Some(2));
    assert_eq!(map.offset(1), Some(100));
}

#[test]
fn an_index_can_be_extended() {
    let old = parse(index()).unwrap();
    let map = old.map().unwrap();
    let strings = [Arc::from(&b"more"[..])];
    let new_tables = [(1, b"new".to_vec())];
    let contents = Contents {
        key: KEY,
        map: &map,
        old: Some(&old),
        new_tables: &new_tables,
        new_strings: &strings,
    };
    let index = parse(bytes(&contents)).unwrap();
    assert_eq!(texts(&index), [Some(&b"main"[..]), Some(b""), Some(b"work"), Some(b"more")]);
    assert_eq!(tables(&index), [Some(&b"first"[..]), Some(b"new"), Some(b"second"), None]);
}

#[test]
fn an_index_of_another_image_is_none() {
    assert!(IndexFile::parse(SharedBytes::from(index()), b"0.1.0 abcdef 1001").is_none());
    assert!(IndexFile::parse(SharedBytes::from(index()), b"").is_none());
}

#[test]
fn an_index_cut_anywhere_is_none() {
    let bytes = index();
    for len in 0..bytes.len() {
        assert!(parse(bytes[..len].to_vec()).is_none(), "{len}");
    }
}

#[test]
fn a_changed_byte_costs_a_table_or_the_index() {
    let bytes = index();
    let whole = parse(bytes.clone()).unwrap();
    let mut lost_tables = 0;
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        let Some(damaged) = parse(bytes) else { continue };
        assert_eq!(texts(&damaged), texts(&whole));
        let differ = |(damaged, whole): &(Option<&[u8]>, Option<&[u8]>)| damaged != whole;
        let lost: Vec<_> =
            tables(&damaged).into_iter().zip(tables(&whole)).filter(differ).collect();
        assert!(matches!(lost[..], [(None, Some(_))]), "{at}: {lost:?}");
        lost_tables += 1;
    }
    assert_eq!(lost_tables, b"firstsecond".len());
}

#[test]
fn an_index_without_its_checksums_is_none_until_they_are_put_in() {
    let whole = sample(KEY);
    let strings = crc32fast::hash(b"mainturna.c").to_le_bytes();
    let at = whole.windows(4).position(|bytes| bytes == strings).unwrap();
    let mut bytes = whole.clone();
    bytes[MAGIC.len()] ^= 1;
    bytes[at] ^= 1;
    assert!(parse(bytes.clone()).is_none());
    IndexFile::put_checksums(&mut bytes);
    assert_eq!(bytes, whole);
    assert_eq!(texts(&parse(bytes).unwrap()), [Some(&b"main"[..]), Some(b"turn"), Some(b"a.c")]);
    // One address of each frame of the table, three strings and one owner.
    assert_eq!(crate::fuzzing::read_index(&sample(crate::fuzzing::INDEX_KEY)), 8 + 16 + 3 + 1);
}
