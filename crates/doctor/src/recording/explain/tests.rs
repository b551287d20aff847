use flame_profile::BuildId;

use super::*;

fn image(name: &str, samples: u64, symbols: Source, debug: Source, language: Language) -> Image {
    let lacking = match debug {
        Source::Missing => vec![BuildId::from_bytes(&[7]).unwrap()],
        _ => Vec::new(),
    };
    let sources = Some(Sources { symbols, debug, lacking, refused: None, split: None });
    Image { name: name.to_owned(), samples, sources, language }
}

#[test]
fn each_image_has_what_it_lacks_and_what_brings_it() {
    let anonymous =
        Image { name: "[anon]".to_owned(), samples: 0, sources: None, language: Language::Other };
    let images = vec![
        image("/opt/server", 1000, Source::Missing, Source::Missing, Language::Rust),
        image("/usr/bin/node", 500, Source::Own, Source::Own, Language::Other),
        image("/opt/tool", 250, Source::Own, Source::Missing, Language::Other),
        image("/opt/go", 10, Source::Missing, Source::Missing, Language::Go),
        anonymous,
    ];
    let mut health = Health::default();
    let mut add = |image: &str, reason, samples| {
        health.unnamed.insert((image.to_owned(), reason), samples);
    };
    add("/opt/server", Missing::Stripped, 900);
    add("[anon]", Missing::NoPerfMap, 100);
    add("[kernel]", Missing::KernelHidden, 20);
    add("/opt/gone", Missing::FileReplaced, 1);
    health.no_unwind_info.insert("/usr/bin/node".to_owned(), 20);
    let images = Images { samples: 1000, images };
    let text = table(&images.rows(&health, &Packages::default()), Paint(false));
    let expect = "    share  image          missing                                              what would bring it
  100.0 %  /opt/server    names in 90.0 %: stripped; inlined functions, lines  profile.release: strip = false, debug = true
   50.0 %  /usr/bin/node  unwind tables: 2.0 % of stacks end here              build it with -fasynchronous-unwind-tables; assembly needs .cfi directives
   25.0 %  /opt/tool      inlined functions, lines                             compile with -g
    1.0 %  /opt/go        inlined functions, lines                             go build without -ldflags '-s -w'
    0.1 %  /opt/gone      names: file replaced since it was mapped             record again: the file has been replaced since
   10.0 %  [anon]         names: anonymous memory without a perf map           node --perf-basic-prof --interpreted-frames-native-stack
    2.0 %  [kernel]       names: kernel addresses hidden                       KERNEL
";
    // Root is told otherwise than a user.
    let kernel = images.mend_other(Missing::KernelHidden);
    assert_eq!(text, expect.replace("KERNEL", &kernel));
}

#[test]
fn debug_files_that_are_missing_or_of_another_build_are_named() {
    let mut one = image("/opt/tool", 1, Source::Own, Source::Own, Language::Other);
    let row = |image: &Image| {
        let sources = image.sources.as_ref().unwrap();
        let mend = mend(image, sources, 0, 0, &Packages::default());
        (missing(sources, 0, 0, &|_| String::new()), mend)
    };
    one.sources.as_mut().unwrap().split = Some("main.dwo".to_owned());
    let found = "inlined functions: main.dwo is not found";
    let mend = "keep the .dwo files where they were built, or pack them with dwp";
    assert_eq!(row(&one), (found.to_owned(), mend.to_owned()));

    let mut two = image("/opt/tool", 1, Source::Missing, Source::Missing, Language::Other);
    two.sources.as_mut().unwrap().refused = Some("/opt/tool.debug".into());
    let found = "inlined functions, lines: /opt/tool.debug is of another build";
    let mend = "the /opt/tool.debug of this build";
    assert_eq!(row(&two), (found.to_owned(), mend.to_owned()));
}
