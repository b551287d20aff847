//! Debug files as the tools of distributions make them.

use super::*;
use crate::test_frames::Frames as _;
use flame_image::testing::build::{FULL, SOURCE, Workshop, by_build_id};
use flame_image::{DebugSearch, alternate_link};

const NONE: [&str; 0] = [];

/// A program, its debug file made by objcopy, and the program stripped with a link to it.
#[track_caller]
fn separated(test: &str, flags: &str) -> Option<(Workshop, flame_profile::ImageAddress)> {
    let shop = Workshop::new(test);
    shop.write("a.c", SOURCE);
    let built = shop.run_all(&format!(
        "gcc -O2 -g {flags} -o whole a.c
         objcopy --only-keep-debug whole prog.debug
         objcopy --strip-all --add-gnu-debuglink=prog.debug whole prog"
    ));
    let at = built.then(|| shop.nop("whole"))?;
    shop.remove("whole");
    Some((shop, at))
}

#[test]
fn a_linked_file_is_found_beside_the_image() {
    let Some((shop, at)) = separated("link-beside", "") else { return };
    assert_eq!(shop.frames("prog", at), FULL);
    shop.move_to("prog.debug", ".debug/prog.debug");
    assert_eq!(shop.frames("prog", at), FULL);
    shop.move_to(".debug/prog.debug", "elsewhere/prog.debug");
    assert_eq!(shop.frames("prog", at), NONE);
}

#[test]
fn directories_that_were_named_are_looked_into_by_build_id_path_and_name() {
    let Some((shop, at)) = separated("debug-dir", "-Wl,--build-id") else { return };
    let below_root = shop.dir.strip_prefix("/").unwrap().join("prog.debug").display().to_string();
    let by_id = by_build_id(&shop.build_id("prog"));
    let mut place = "prog.debug".to_owned();
    for next in [by_id, below_root, "prog.debug".to_owned()] {
        let next = format!("d/{next}");
        shop.move_to(&place, &next);
        place = next;
        assert_eq!(shop.frames("prog", at), NONE, "{place}");
        let with = |search: &mut DebugSearch| search.directories.push(shop.path("d"));
        assert_eq!(shop.frames_with("prog", at, with), FULL, "{place}");
    }
}

#[test]
fn a_file_in_debuginfods_cache_is_found() {
    let Some((shop, at)) = separated("cache", "-Wl,--build-id") else { return };
    shop.move_to("prog.debug", &format!("cache/{}/debuginfo", shop.build_id("prog")));
    let with = |search: &mut DebugSearch| search.cache = Some(shop.path("cache"));
    assert_eq!(shop.frames_with("prog", at, with), FULL);
    assert_eq!(shop.frames("prog", at), NONE);
}

#[test]
fn the_root_of_another_file_system_is_looked_into() {
    let Some((shop, at)) = separated("other-root", "-Wl,--build-id") else { return };
    shop.move_to("prog", "root/usr/bin/prog");
    let by_id = format!("root/usr/lib/debug/{}", by_build_id(&shop.build_id("root/usr/bin/prog")));
    let mut place = "prog.debug".to_owned();
    for next in [by_id.as_str(), "root/usr/bin/prog.debug"] {
        shop.move_to(&place, next);
        place = next.to_owned();
        let with = |search: &mut DebugSearch| {
            (search.path, search.root) = (PathBuf::from("/usr/bin/prog"), shop.path("root"));
        };
        assert_eq!(shop.frames_with("root/usr/bin/prog", at, with), FULL, "{place}");
    }
}

#[test]
fn without_build_ids_the_checksum_decides() {
    let Some((shop, at)) = separated("link-checksum", "-Wl,--build-id=none") else { return };
    assert_eq!(shop.frames("prog", at), FULL);
    let mut bytes = std::fs::read(shop.path("prog.debug")).unwrap();
    bytes.push(0);
    std::fs::write(shop.path("prog.debug"), bytes).unwrap();
    assert_eq!(shop.frames("prog", at), NONE, "a file that was changed is another one");
}

#[test]
fn a_file_of_another_build_is_not_believed_whatever_the_checksum_says() {
    let Some((shop, at)) = separated("link-id", "-Wl,--build-id=0xabcdef01") else { return };
    let other = shop.run_all(
        "gcc -O2 -g -Wl,--build-id=0xabcdef02 -o whole a.c
         objcopy --only-keep-debug whole prog.debug
         objcopy --remove-section=.gnu_debuglink prog
         objcopy --add-gnu-debuglink=prog.debug prog",
    );
    assert!(other);
    assert_eq!(shop.frames("prog", at), NONE);
}

#[test]
fn a_link_of_a_stripped_image_to_itself_is_no_debug_file() {
    let shop = Workshop::new("link-self");
    shop.write("a.c", SOURCE);
    let built = shop.run_all(
        "gcc -O2 -Wl,--build-id -o whole a.c
         strip -o prog whole
         cp prog copy
         objcopy --add-gnu-debuglink=prog copy
         mv copy prog",
    );
    if built {
        let at = shop.nop("whole");
        assert_eq!(shop.frames("prog", at), NONE);
    }
}

#[test]
fn eu_strip_and_its_debug_file_belong_together() {
    let shop = Workshop::new("eu-strip");
    shop.write("a.c", SOURCE);
    let built = shop.run("gcc -O2 -g -o whole a.c");
    if built && shop.run("eu-strip -o prog -f prog.debug whole") {
        let at = shop.nop("whole");
        assert_eq!(shop.frames("prog", at), FULL);
        shop.remove("prog.debug");
        assert_eq!(shop.frames("prog", at), NONE);
    }
}

#[test]
fn compressed_debug_sections_are_read() {
    let shop = Workshop::new("compressed");
    shop.write("a.c", SOURCE);
    if !shop.run("gcc -O2 -g -o whole a.c") {
        return;
    }
    let at = shop.nop("whole");
    for kind in ["zlib", "zlib-gnu", "zstd"] {
        // binutils may be built without zstd; then they say so and fail.
        let help = std::process::Command::new("objcopy").arg("--help").output().unwrap();
        if kind == "zstd" && !String::from_utf8_lossy(&help.stdout).contains("zstd") {
            eprintln!("SKIP: this objcopy has no zstd");
            continue;
        }
        assert!(shop.run(&format!("objcopy --compress-debug-sections={kind} whole {kind}")));
        let image = ImageFile::open(&shop.path(kind)).unwrap();
        let stored = |name: &str| image.elf().unwrap().section_by_name(name).is_some();
        assert!(stored(if kind == "zlib-gnu" { ".zdebug_info" } else { ".debug_info" }));
        assert_eq!(shop.frames(kind, at), FULL, "{kind}");
    }
}

/// As rpm's find-debuginfo makes it: the functions of `.symtab` that `.dynsym` has not.
fn with_mini_debug_info(shop: &Workshop) -> bool {
    shop.write("a.c", SOURCE);
    shop.run_all(
        "gcc -O2 -o whole a.c
         objcopy -S --remove-section=.comment --keep-symbol=hidden --keep-symbol=main whole mini
         xz -9 mini
         strip -o prog whole
         objcopy --add-section=.gnu_debugdata=mini.xz prog",
    )
}

#[test]
fn mini_debug_info_names_functions() {
    let shop = Workshop::new("mini");
    if with_mini_debug_info(&shop) {
        assert_eq!(shop.frames("prog", shop.nop("whole")), ["hidden"]);
    }
}

/// Two programs whose common debug information dwz moves into a file of its own, since both have
/// a header with the inlined functions.
fn shared_by_dwz(shop: &Workshop, flags: &str, dwz: &str) -> Option<flame_profile::ImageAddress> {
    // dwz moves only what is worth it: types and functions of some size.
    let types: String = (0..200)
        .map(|i| format!("struct common_{i} {{ long first; int second[{i}]; char *third; }};\n"))
        .collect();
    let uses: String = (0..200).map(|i| format!("struct common_{i} *use_{i};\n")).collect();
    shop.write("common.h", &format!("{types}{}", SOURCE.split("static __attr").next().unwrap()));
    let own = SOURCE.split_once("static __attr").unwrap().1;
    shop.write("a.c", &format!("#include \"common.h\"\n{uses}static __attr{own}"));
    let built = shop.run_all(&format!(
        "gcc -O2 -g {flags} -Wl,--build-id -o prog a.c
         gcc -O1 -g {flags} -Wl,--build-id -o other a.c
         dwz {dwz} -m common.debug prog other"
    ));
    built.then(|| shop.nop("prog"))
}

#[test]
fn what_dwz_moved_into_a_file_of_its_own_is_found_there() {
    for (test, flags, dwz) in
        [("dwz-4", "-gdwarf-4", ""), ("dwz-5", "-gdwarf-5", ""), ("dwz-sup", "-gdwarf-5", "-5")]
    {
        let shop = Workshop::new(test);
        let Some(at) = shared_by_dwz(&shop, flags, dwz) else { continue };
        let image = ImageFile::open(&shop.path("prog")).unwrap();
        let (path, id) = alternate_link(&image).expect(test);
        assert!(path.ends_with("common.debug"), "{path:?}");
        let common = image.supplement().expect(test);
        assert_eq!(common.path(), Some(&*shop.path("common.debug")));
        assert_eq!(shop.frames("prog", at), FULL, "{test}");

        // By build id, where the path in the link is that of another machine.
        shop.move_to("common.debug", &format!("d/{}", by_build_id(&id.to_string())));
        let with = |search: &mut DebugSearch| search.directories.push(shop.path("d"));
        assert_eq!(shop.frames_with("prog", at, with), FULL, "{test}");

        // Another file at that path is not believed.
        std::fs::copy(shop.path("other"), shop.path("common.debug")).unwrap();
        assert!(ImageFile::open(&shop.path("prog")).unwrap().supplement().is_none());
    }
}
