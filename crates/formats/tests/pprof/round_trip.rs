//! What is written reads back equal, and broken files are errors.

use flame_formats::{PprofError, read_pprof, write_pprof};
use flame_profile::{Profile, StackId};

use crate::describe::describe;
use crate::samples::{Random, random, server};
use crate::wire::gunzip;

pub(crate) fn written(profile: &Profile) -> Vec<u8> {
    let mut file = Vec::new();
    write_pprof(profile, &mut file).unwrap();
    file
}

#[test]
fn a_profile_survives() {
    let profile = server();
    let read = read_pprof(&written(&profile)).unwrap();
    assert_eq!(describe(&read), describe(&profile));
}

#[test]
fn random_profiles_survive_and_are_written_alike_again() {
    for seed in 0..500 {
        let profile = random(seed);
        let file = written(&profile);
        let read = read_pprof(&file).unwrap();
        assert_eq!(describe(&read), describe(&profile), "seed {seed}");
        assert!(written(&read) == file, "seed {seed}: another file");
    }
}

#[test]
fn an_empty_profile_survives() {
    let profile = Profile::new(vec![flame_profile::ValueType::samples()]);
    let read = read_pprof(&written(&profile)).unwrap();
    assert_eq!(describe(&read), describe(&profile));
}

#[test]
fn files_are_read_without_gzip_too() {
    let file = written(&server());
    let (zipped, plain) = (read_pprof(&file).unwrap(), read_pprof(&gunzip(&file)).unwrap());
    assert_eq!(describe(&zipped), describe(&plain));
}

#[test]
fn values_beyond_63_bits_are_cut_and_the_file_says_so() {
    let mut profile = server();
    let thread = profile.samples().next().unwrap().thread;
    profile.add_sample(thread, StackId::EMPTY, &[u64::MAX, 1 << 63]);
    profile.health.notes.clear();
    let read = read_pprof(&written(&profile)).unwrap();
    let last = read.samples().last().unwrap();
    assert_eq!(last.values, [i64::MAX as u64, i64::MAX as u64]);
    assert_eq!(read.health.notes, ["pprof: 2 values were limited to 63 bits"]);
}

#[test]
fn a_cut_file_is_an_error_at_every_byte() {
    let file = written(&server());
    for len in 0..file.len() {
        assert!(read_pprof(&file[..len]).is_err(), "{len} of {} bytes", file.len());
    }
}

/// A protobuf message cut between two fields is a message again, so that not every cut can be
/// noticed; but up to the end of the strings that frames and threads need it is. The next string
/// is the one that only other tools show.
#[test]
fn a_cut_plain_file_is_an_error_at_every_byte_up_to_its_last_name() {
    let plain = gunzip(&written(&server()));
    let names_end = plain.windows(10).position(|text| text == b"[no stack]").unwrap() - 2;
    assert!(names_end > 700, "{names_end} of {} bytes", plain.len());
    for len in 0..plain.len() {
        let result = read_pprof(&plain[..len]);
        assert!(result.is_err() || len >= names_end, "{len} of {} bytes", plain.len());
    }
}

/// Whatever the bytes are, reading ends without a panic, and what it gives can be written.
#[test]
fn damaged_files_are_errors_or_profiles() {
    let plain = gunzip(&written(&server()));
    let mut random = Random(7);
    let (mut errors, rounds) = (0, 5_000);
    for _ in 0..rounds {
        let mut damaged = plain.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = random.next() as u8;
        }
        match read_pprof(&damaged) {
            Ok(profile) => assert!(!written(&profile).is_empty()),
            Err(_) => errors += 1,
        }
    }
    assert!((rounds / 2..rounds).contains(&errors), "{errors} of {rounds} noticed");
}

#[test]
fn files_of_other_kinds_are_refused() {
    let check = |bytes: &[u8], message: &str| {
        let error = read_pprof(bytes).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    check(b"", "not a pprof file: no sample types");
    check(b"server;main 7\n", "not a pprof file: byte 0 is not part of a profile message");
    check(b"\x7fELF\x02\x01\x01", "not a pprof file: byte 0 is not part of a profile message");
    check(b"\x1f\x8bnot gzip", "the file's compressed data is damaged or truncated");
    assert!(matches!(read_pprof(b"\x0a\x7f"), Err(PprofError::Wire { offset: 0, .. })));
}
