use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A new directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("flame-index-{test}-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Scratch(path)
    }

    fn cache(&self) -> IndexCache {
        IndexCache::open(&self.0.join("flame")).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn name(id: u8) -> IndexName {
    let build_id = BuildId::from_bytes(&[id; 20]).unwrap();
    IndexName::new(&build_id, &FileStatus::from(&fs::metadata("/proc/self/exe").unwrap()), 7)
}

fn load(cache: &IndexCache, name: &IndexName) -> Option<Vec<u8>> {
    cache.load(name).map(|bytes| bytes.to_vec())
}

fn save(cache: &IndexCache, name: &IndexName, bytes: &[u8]) -> io::Result<()> {
    let (head, rest) = bytes.split_at(1);
    cache.save(name, [head, rest].into_iter())
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_saved_is_loaded_until_it_is_replaced() {
    let scratch = Scratch::new("save");
    let cache = scratch.cache();
    assert_eq!(load(&cache, &name(1)), None);
    save(&cache, &name(1), b"one").unwrap();
    save(&cache, &name(2), b"two").unwrap();
    let mapped = cache.load(&name(1)).unwrap();
    save(&cache, &name(1), b"new").unwrap();
    // Whoever reads the old file goes on reading it.
    assert_eq!(&mapped[..], b"one");
    assert_eq!(load(&cache, &name(1)), Some(b"new".to_vec()));
    assert_eq!(load(&cache, &name(2)), Some(b"two".to_vec()));
    let files: Vec<_> = fs::read_dir(scratch.0.join("flame")).unwrap().collect();
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(file.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
    assert_eq!(fs::metadata(scratch.0.join("flame")).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let scratch = Scratch::new("directory");
    let directory = scratch.0.join("flame");
    let denied = |path: &Path| IndexCache::open(path).unwrap_err().kind();
    scratch.cache();
    for bits in [0o770, 0o707] {
        mode(&directory, bits);
        assert_eq!(denied(&directory), io::ErrorKind::PermissionDenied);
    }
    mode(&directory, 0o700);
    assert_eq!(IndexCache::open(&directory).unwrap().directory, directory);
    let link = scratch.0.join("link");
    symlink(&directory, &link).unwrap();
    assert_eq!(denied(&link), io::ErrorKind::PermissionDenied);
    mode(&scratch.0, 0o777);
    assert_eq!(denied(&directory), io::ErrorKind::PermissionDenied);
}

#[test]
fn a_file_that_others_may_have_written_is_left_alone() {
    let scratch = Scratch::new("file");
    let cache = scratch.cache();
    save(&cache, &name(1), b"one").unwrap();
    let path = scratch.0.join("flame").join(name(1).file);
    for bits in [0o620, 0o602] {
        mode(&path, bits);
        assert_eq!(load(&cache, &name(1)), None);
    }
    mode(&path, 0o600);
    assert_eq!(load(&cache, &name(1)), Some(b"one".to_vec()));
    let elsewhere = scratch.0.join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(load(&cache, &name(1)), None);
    // Saving replaces the link and not what it leads to.
    save(&cache, &name(1), b"new").unwrap();
    assert_eq!(fs::read(&elsewhere).unwrap(), b"one");
    assert_eq!(load(&cache, &name(1)), Some(b"new".to_vec()));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(load(&cache, &name(1)), None);
}

#[test]
fn a_link_in_place_of_the_temporary_file_is_not_followed() {
    let scratch = Scratch::new("temporary");
    let cache = scratch.cache();
    let victim = scratch.0.join("victim");
    fs::write(&victim, b"mine").unwrap();
    for count in 0..100 {
        let temporary = format!("flame/.{}-{count}.tmp", std::process::id());
        symlink(&victim, scratch.0.join(temporary)).unwrap();
    }
    save(&cache, &name(1), b"one").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert_eq!(load(&cache, &name(1)), Some(b"one".to_vec()));
}

#[test]
fn the_least_recently_used_go_first() {
    let scratch = Scratch::new("limit");
    let cache = scratch.cache().with_limit(ByteLen(10));
    let age = |id: u8, seconds: u64| {
        let path = scratch.0.join("flame").join(name(id).file);
        let used = SystemTime::now() - Duration::from_secs(seconds);
        let file = File::options().write(true).open(path).unwrap();
        file.set_times(FileTimes::new().set_modified(used)).unwrap();
    };
    save(&cache, &name(1), b"1111").unwrap();
    save(&cache, &name(2), b"2222").unwrap();
    age(1, 2000);
    age(2, 1000);
    // Used again, so that the other one is older now.
    assert_eq!(load(&cache, &name(1)), Some(b"1111".to_vec()));
    save(&cache, &name(3), b"3333").unwrap();
    let left = [1, 2, 3].map(|id| load(&cache, &name(id)).is_some());
    assert_eq!(left, [true, false, true]);
    // What is no index is not flame's to remove, but for old files of its own.
    let (other, stale) = (scratch.0.join("flame/notes"), scratch.0.join("flame/.1-0.tmp"));
    fs::write(&other, b"0123456789ab").unwrap();
    fs::write(&stale, b"cut").unwrap();
    let hours = FileTimes::new().set_modified(SystemTime::now() - 2 * STALE);
    File::options().write(true).open(&stale).unwrap().set_times(hours).unwrap();
    save(&cache, &name(3), b"3333").unwrap();
    assert_eq!((other.exists(), stale.exists()), (true, false));
    save(&cache, &name(4), b"more than the limit").unwrap();
    assert_eq!([1, 2, 3, 4].map(|id| load(&cache, &name(id)).is_some()), [false; 4]);
}

#[test]
fn names_differ_by_owner_and_keys_by_all_that_is_known() {
    let build_id = BuildId::from_bytes(&[1; 20]).unwrap();
    let file = FileStatus::from(&fs::metadata("/proc/self/exe").unwrap());
    let one = IndexName::new(&build_id, &file, 7);
    let owner = file.owner;
    assert_eq!(one.file, format!("{}-{owner}{ENDING}", "01".repeat(20)));
    assert_ne!(one.key, IndexName::new(&build_id, &file, 8).key);
    let with =
        |id, file| one.clone().with_supplement(&BuildId::from_bytes(&[id; 20]).unwrap(), file);
    let keys = [one.clone(), with(2, None), with(2, Some(&file)), with(3, None)].map(|n| n.key);
    assert!((0..4).all(|i| (0..i).all(|j| keys[i] != keys[j])), "{keys:?}");
    let long = BuildId::from_bytes(&[1; 5000]).unwrap();
    let name = IndexName::new(&long, &file, 7).file;
    assert!(name.ends_with(&format!("-{owner}{ENDING}")) && name.len() < 255, "{name}");
}
