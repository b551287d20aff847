//! Targets that try to break whoever looks at them: flame neither crashes, hangs, eats memory, nor
//! passes on what steers a terminal or a browser.

use std::fs;
use std::io::Write;
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::stat::Mode;

use crate::support::{
    Build, Folded, Scratch, Target, finish, flame, live, live_as_root, program, program_built,
};

/// What no recording of a small program may come near.
const MAX_MEMORY_KIB: i64 = 1 << 20;

/// Most memory that any child of this test process ever had.
#[track_caller]
fn assert_memory_is_bounded() {
    let most = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    assert!(most < MAX_MEMORY_KIB, "{most} KiB");
}

/// Bytes that steer a terminal; a new line is what text is made of.
#[track_caller]
fn assert_no_control(what: &str, text: &str) {
    let control = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(control, None, "{what}:\n{text:?}");
}

/// Launches a command under flame with all kinds of outputs; the folded one.
#[track_caller]
fn record_all(scratch: &Scratch, command: &[&str]) -> Folded {
    let mut run = flame();
    run.args(["record", "-F", "999", "-vv", "--threads"]);
    let names = ["out.svg", "out.folded", "out.txt", "out.pb.gz"];
    for name in names {
        run.args(["-o", &scratch.file(name)]);
    }
    let ended = finish(run.arg("--").args(command)).success();
    assert_no_control("stderr", &ended.stderr);
    for name in &names[..3] {
        assert_no_control(name, &fs::read_to_string(scratch.file(name)).unwrap());
    }
    assert_memory_is_bounded();
    Folded::parse(&fs::read_to_string(scratch.file("out.folded")).unwrap())
}

/// Removes the perf map that a target left behind.
struct Map(String);

impl Map {
    fn of(target: &Target) -> Map {
        Map(format!("/tmp/perf-{}.map", target.pid()))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Attaches to a target for half a second; the folded output.
#[track_caller]
fn record_target(target: &Target) -> Folded {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let arguments = ["record", "-F", "999", "-d", "500ms", "-o", &path, "-p", &target.pid_text()];
    let ended = finish(flame().args(arguments)).success();
    assert_no_control("stderr", &ended.stderr);
    assert_memory_is_bounded();
    let folded = Folded::parse(&fs::read_to_string(path).unwrap());
    assert!(folded.total() >= 5, "{folded:?}");
    folded
}

/// Asserts that most of a recording is in frames for which `test` holds: all, but for the code that
/// calls them.
#[track_caller]
fn assert_most(folded: &Folded, test: impl Fn(&str) -> bool) {
    assert!(folded.with_any(test) * 10 >= folded.total() * 8, "{folded:?}");
}

#[test]
fn names_steer_neither_terminal_nor_browser() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("\x1b[2J<script>alert(1)<!script>");
    fs::copy(program("hostile.c"), &path).unwrap();
    let argument = "\x1b]0;pwned\x07</title><script>alert(2)</script>\r\u{9b}31m";
    let folded = record_all(&scratch, &[&path, "names", "0.3", argument]);
    // The name of the code is in the map; some of what it would do is visible as text.
    assert_most(&folded, |frame| frame.contains("<script>alert(1)</script>"));
    let svg = fs::read_to_string(scratch.file("out.svg")).unwrap();
    assert!(svg.contains("alert(1)") && !svg.contains("<script>alert"), "{svg}");
    for map in fs::read_dir("/tmp").unwrap().flatten() {
        let name = map.file_name().into_string().unwrap_or_default();
        let ours = name.starts_with("perf-") && name.ends_with(".map");
        if ours && fs::read(map.path()).is_ok_and(|text| text.windows(5).any(|w| w == b"pwned")) {
            fs::remove_file(map.path()).unwrap();
        }
    }
}

#[test]
fn a_stack_pointer_that_points_nowhere_ends_the_stack_only() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let folded = record_all(&scratch, &[&program("hostile.c"), "lost-stack", "0.3"]);
    let lost = folded.with_any(|frame| frame == "elsewhere");
    assert!(lost >= folded.total() * 9 / 10, "{folded:?}");
    // A sample may come before the stack pointer points nowhere.
    let truncated = folded.with(&["[truncated stack]", "elsewhere"]);
    assert!(truncated * 100 >= lost * 99, "{folded:?}");
}

#[test]
fn call_frame_information_that_leads_in_circles_is_cut() {
    if !live() || !cfg!(target_arch = "x86_64") {
        return;
    }
    for (mode, function) in [("cyclic-cfi", "cyclic"), ("endless-expression", "endless")] {
        let scratch = Scratch::new();
        let folded = record_all(&scratch, &[&program("hostile.c"), mode, "0.3"]);
        // Whichever mark says so: an endless stack ends at the limit of frames.
        let is_mark =
            |frame: &str| ["[truncated", "[frames beyond"].iter().any(|m| frame.starts_with(m));
        let cut = folded.with_any(is_mark);
        assert!(cut >= folded.total() * 9 / 10, "{mode}: {folded:?}");
        assert_eq!(folded.with_any(|frame| frame == function), cut, "{mode}: {folded:?}");
    }
}

#[test]
fn a_perf_map_of_4_gb_is_read_in_bounded_memory() {
    if !live() {
        return;
    }
    let target = Target::start(&program("hostile.c"), &["huge-map", "30"]);
    let map = Map::of(&target);
    assert_eq!(fs::metadata(&map.0).unwrap().len(), 4 << 30);
    let folded = record_target(&target);
    assert_most(&folded, |frame| frame == "first_[j]");
}

#[test]
fn a_perf_map_that_is_a_fifo_is_not_waited_for() {
    if !live() {
        return;
    }
    let target = Target::start(&program("hostile.c"), &["fifo-map", "30"]);
    let _map = Map::of(&target);
    let folded = record_target(&target);
    assert_most(&folded, |frame| frame.starts_with("[anon+"));
}

#[test]
fn a_perf_map_that_is_a_link_or_another_users_is_not_believed() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let secret = scratch.file("secret");
    let mut target = Target::start(&program("hostile.c"), &["link-map", "30", &secret]);
    let map = Map::of(&target);
    // The link leads to a map of the right form and owner that names all addresses.
    fs::write(&secret, "0 ffffffffffffffff secret\n").unwrap();
    let folded = record_target(&target);
    assert_eq!(folded.with_any(|frame| frame.starts_with("secret")), 0, "{folded:?}");
    let why = |why: &str| {
        let (pid, path) = (target.pid_text(), scratch.file("why.folded"));
        let mut command = flame();
        command.args(["record", "-F", "999", "-d", "300ms", "-o", &path, "-p", &pid]);
        let said = finish(&mut command).success().stderr;
        assert!(said.contains(&format!("{}{why}", map.0)), "{said}");
    };
    why(" is a link or no regular file");
    // The same as a file of another user's.
    fs::remove_file(&map.0).unwrap();
    fs::copy(&secret, &map.0).unwrap();
    std::os::unix::fs::chown(&map.0, Some(65534), Some(65534)).unwrap();
    let folded = record_target(&target);
    assert_eq!(folded.with_any(|frame| frame.starts_with("secret")), 0, "{folded:?}");
    why(" belongs to user 65534, not to the process's");
    // And as the target's own, so that the test cannot pass for another reason.
    std::os::unix::fs::chown(&map.0, Some(0), Some(0)).unwrap();
    let folded = record_target(&target);
    assert_most(&folded, |frame| frame == "secret_[j]");
    assert!(target.is_running());
}

/// Whoever mounts a file of root's over the name of a map has flame show its text as the name of a function.
#[test]
fn a_perf_map_of_roots_is_not_believed_of_a_users_process() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let secret = scratch.file("secret");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args([&program("hostile.c"), "link-map", "30", &secret]);
    let mut target = Target::spawn(&mut command);
    assert!(target.line().starts_with("ready"));
    let map = Map::of(&target);
    fs::remove_file(&map.0).unwrap();
    fs::write(&map.0, "0 ffffffffffffffff secret\n").unwrap();
    let folded = record_target(&target);
    assert_eq!(folded.with_any(|frame| frame.starts_with("secret")), 0, "{folded:?}");
    // As the user's own, so that the test cannot pass for another reason.
    std::os::unix::fs::chown(&map.0, Some(65534), Some(65534)).unwrap();
    let folded = record_target(&target);
    assert_most(&folded, |frame| frame == "secret_[j]");
    assert!(target.is_running());
}

/// An ELF file of 64 bits to be damaged where loaders do not look.
struct Elf(Vec<u8>);

/// Where fields stand in a section header, and their length.
const NAME: (usize, usize) = (0, 4);
const FLAGS: (usize, usize) = (8, 8);
const OFFSET: (usize, usize) = (24, 8);
const SIZE: (usize, usize) = (32, 8);

impl Elf {
    fn of(source: &str) -> Elf {
        Elf(fs::read(program_built(source, Build::Debug)).unwrap())
    }

    fn number(&self, at: usize, len: usize) -> usize {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&self.0[at..at + len]);
        usize::try_from(u64::from_le_bytes(bytes)).unwrap()
    }

    fn header(&self, index: usize) -> usize {
        self.number(0x28, 8) + index * 64
    }

    fn field(&self, header: usize, field: (usize, usize)) -> usize {
        self.number(header + field.0, field.1)
    }

    fn set(&mut self, header: usize, field: (usize, usize), value: u64) {
        let at = header + field.0;
        self.0[at..at + field.1].copy_from_slice(&value.to_le_bytes()[..field.1]);
    }

    /// The header of a section.
    #[track_caller]
    fn section(&self, name: &str) -> usize {
        let names = self.field(self.header(self.number(0x3e, 2)), OFFSET);
        let headers = (0..self.number(0x3c, 2)).map(|index| self.header(index));
        let is = |header: &usize| {
            let at = names + self.field(*header, NAME);
            self.0[at..].starts_with(format!("{name}\0").as_bytes())
        };
        let found = headers.into_iter().find(is);
        found.unwrap_or_else(|| panic!("no section {name}"))
    }

    /// Its bytes.
    fn range(&self, name: &str) -> std::ops::Range<usize> {
        let header = self.section(name);
        let start = self.field(header, OFFSET);
        start..start + self.field(header, SIZE)
    }

    /// Replaces a text wherever it stands in a section.
    fn replace(&mut self, section: &str, from: &[u8], to: &[u8]) {
        assert_eq!(from.len(), to.len());
        let range = self.range(section);
        let found = self.0[range.clone()].windows(from.len()).position(|text| text == from);
        let at = range.start + found.unwrap_or_else(|| panic!("{section} has no such text"));
        self.0[at..at + to.len()].copy_from_slice(to);
    }

    /// Gives a section other bytes, at the end of the file.
    fn move_section(&mut self, name: &str, bytes: &[u8], compressed: bool) {
        let header = self.section(name);
        let (at, len) = (self.0.len() as u64, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self.set(header, OFFSET, at);
        self.set(header, SIZE, len);
        let flags = self.field(header, FLAGS) as u64;
        self.set(header, FLAGS, if compressed { flags | 0x800 } else { flags });
    }

    /// Runs it under flame.
    #[track_caller]
    fn record(&self) -> Folded {
        self.record_with_hole(self.0.len() as u64)
    }

    /// The same with a hole behind it, up to that length.
    #[track_caller]
    fn record_with_hole(&self, len: u64) -> Folded {
        let scratch = Scratch::new();
        let path = scratch.file("shares");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(&self.0).unwrap();
        file.set_len(len).unwrap();
        nix::sys::stat::fchmod(&file, Mode::S_IRWXU).unwrap();
        drop(file);
        let folded = record_all(&scratch, &[&path, "0.3"]);
        assert!(folded.total() > 150, "{folded:?}");
        folded
    }
}

#[test]
fn symbol_names_of_a_file_are_shown_as_text() {
    if !live() {
        return;
    }
    let mut elf = Elf::of("shares.c");
    for section in [".strtab", ".debug_str"] {
        elf.replace(section, b"alpha\0", b"\x1b[31m\0");
        elf.replace(section, b"omega\0", b"<b>\r\x07\0");
    }
    let folded = elf.record();
    assert!(folded.with_any(|frame| frame == "work") > 200, "{folded:?}");
    assert!(folded.with_any(|frame| frame.contains("[31m")) > 80, "{folded:?}");
    assert!(folded.with_any(|frame| frame.contains("<b>")) > 30, "{folded:?}");
}

#[test]
fn headers_that_lie_cost_names_and_nothing_else() {
    if !live() {
        return;
    }
    let sections = [".symtab", ".strtab", ".debug_info", ".debug_line", ".eh_frame", ".shstrtab"];
    for size in [u64::MAX, u64::MAX / 2, 1 << 40] {
        for field in [SIZE, OFFSET] {
            let mut elf = Elf::of("shares.c");
            let headers = sections.map(|name| elf.section(name));
            headers.into_iter().for_each(|header| elf.set(header, field, size));
            elf.record();
        }
    }
    // More sections than the file could hold.
    let mut elf = Elf::of("shares.c");
    elf.0[0x3c..0x3e].copy_from_slice(&0xfeff_u16.to_le_bytes());
    elf.record();
}

/// A hole makes a table of any length lie within its file, at no cost to who made it.
#[test]
fn tables_as_long_as_a_hole_are_not_gone_through() {
    if !live() {
        return;
    }
    const HOLE: u64 = 1 << 40;
    for name in [".symtab", ".dynsym", ".rela.dyn", ".note.gnu.build-id", ".plt.got"] {
        let mut elf = Elf::of("shares.c");
        let (header, end) = (elf.section(name), elf.0.len() as u64);
        elf.set(header, OFFSET, end);
        elf.set(header, SIZE, HOLE / 24 * 24);
        elf.record_with_hole(HOLE + end);
    }
    let mut elf = Elf::of("shares.c");
    elf.replace(".shstrtab", b".debug_line_str\0", b".debug_frame\0\0\0\0");
    let (header, end) = (elf.section(".debug_frame"), elf.0.len() as u64);
    elf.set(header, OFFSET, end);
    elf.set(header, SIZE, HOLE);
    // Without the table that is looked at first.
    let first = elf.section(".eh_frame");
    elf.set(first, SIZE, 0);
    elf.record_with_hole(HOLE + end);
    // As many sections as there is room for: the number is in the first header then.
    let mut elf = Elf::of("shares.c");
    elf.0[0x3c..0x3e].fill(0);
    let first = elf.header(0);
    elf.set(first, SIZE, HOLE / 64);
    elf.record_with_hole(HOLE + elf.0.len() as u64);
}

#[test]
fn sections_that_decompress_to_gigabytes_are_left_out() {
    if !live() {
        return;
    }
    const LEN: usize = 256 << 20;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1 << 20];
    (0..LEN >> 20).for_each(|_| encoder.write_all(&zeros).unwrap());
    // ELFCOMPRESS_ZLIB, the length and the alignment, as Elf64_Chdr has them.
    let mut bomb = [1_u64, LEN as u64, 1].map(u64::to_le_bytes).concat();
    bomb.extend(encoder.finish().unwrap());
    let mut elf = Elf::of("shares.c");
    for name in [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str"] {
        elf.move_section(name, &bomb, true);
    }
    let folded = elf.record();
    assert!(folded.with(&["main", "work", "alpha"]) > 80, "{folded:?}");
}

#[test]
fn damaged_tables_are_survived() {
    if !live() {
        return;
    }
    for seed in 1..=6_u64 {
        let mut elf = Elf::of("shares.c");
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for name in [".debug_info", ".debug_abbrev", ".debug_line", ".eh_frame", ".symtab"] {
            let range = elf.range(name);
            for _ in 0..range.len() / 20 + 1 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let at = range.start + (state >> 8) as usize % range.len();
                elf.0[at] = state as u8;
            }
        }
        elf.record();
    }
}

/// Reading what was cut off a mapped file is a bus error, which ends whoever is not ready for it.
#[test]
fn a_library_that_is_cut_down_while_it_is_read_costs_its_names_only() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let plugin = scratch.file("plugin.so");
    fs::copy(program_built("plugin.c", Build::Shared), &plugin).unwrap();
    let folded = record_all(&scratch, &[&program("hostile.c"), "truncate", "0.6", &plugin]);
    assert_eq!(fs::metadata(&plugin).unwrap().len(), 0);
    assert!(folded.with_any(|frame| frame == "run_code") > 150, "{folded:?}");
    let unnamed = |frame: &str| frame.starts_with("[plugin.so") || frame.starts_with("plugin_");
    assert!(folded.with_any(unnamed) > 150, "{folded:?}");
}

#[test]
fn a_process_with_60000_mappings_is_read_in_time() {
    if !live() {
        return;
    }
    let target = Target::start(&program("hostile.c"), &["pages", "30"]);
    let folded = record_target(&target);
    assert_most(&folded, |frame| frame == "run_code");
}

#[test]
fn doctor_survives_them_all() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("\x1b[2Jhostile");
    fs::copy(program("hostile.c"), &path).unwrap();
    for mode in ["names", "fifo-map", "huge-map", "pages"] {
        let target = Target::start(&path, &[mode]);
        let _map = Map::of(&target);
        let ended = finish(flame().args(["doctor", "-p", &target.pid_text()]));
        assert!(ended.stdout.contains("complete: "), "{}\n{}", ended.stdout, ended.stderr);
        assert_no_control(mode, &ended.stdout);
    }
}

/// Runs flame as root in a directory where another user has put something.
#[track_caller]
fn refuse_planted(plant: impl Fn(&str), arguments: &[&str]) -> String {
    let scratch = Scratch::new();
    let path = scratch.file("flame.svg");
    plant(&path);
    let mut run = flame();
    run.arg("record").args(arguments).args(["--", "true"]).current_dir(scratch.path());
    let ended = finish(&mut run);
    ended.error(1, &["cannot write", "flame.svg"]);
    ended.stderr
}

#[test]
fn root_follows_no_link_and_waits_at_no_fifo_that_others_planted() {
    if !live_as_root() {
        return;
    }
    let nobody = Some(65534);
    let link = |path: &str| {
        std::os::unix::fs::symlink("/dev/full", path).unwrap();
        std::os::unix::fs::lchown(path, nobody, nobody).unwrap();
    };
    let fifo = |path: &str| {
        nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap();
        std::os::unix::fs::chown(path, nobody, nobody).unwrap();
    };
    for arguments in [&[][..], &["-o", "flame.svg"]] {
        let message = refuse_planted(link, arguments);
        assert!(message.contains("user nobody put it there"), "{message}");
        let message = refuse_planted(fifo, arguments);
        assert!(message.contains("user nobody put it there"), "{message}");
    }
}

#[test]
fn the_default_output_is_not_read_through_a_fifo_or_link() {
    if !live() {
        return;
    }
    refuse_planted(|path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap(), &[]);
    refuse_planted(|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(), &[]);
}
