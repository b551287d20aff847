//! `cargo xtask bench matrix`: which share of the stacks reaches its root, by the kind of program, who
//! records it and how, so that the next gap is seen.
//!
//! All programs do the same: `inner`, called by `outer`, burns and sleeps in turn, for the whole time in
//! which they are recorded. A stack is rooted if it shows that from the outermost function on; or, of what
//! else a program does (a runtime's start, its other threads), if its outermost function is one that the
//! kernel or a C library starts with. What is not rooted has to stand under `[truncated stack]`: if it
//! does not, the picture is wrong without saying so, and the table says it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{build_flame, in_directory, rooted};

mod kinds;
mod recording;

use kinds::Kind;
use recording::{Mode, Recording, User};

/// Fewer samples than these say nothing of a share.
const FEWEST: u64 = 20;

/// What flame puts stacks under that do not reach their root.
const TRUNCATED: &str = "[truncated stack]";

/// What flame has instead of a stack for a wait that began before it was there.
const UNSEEN: &str = "[waiting since before the recording]";

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    /// For how long each program is recorded.
    seconds: u64,
    /// Kinds whose name contains this; `None` = all.
    only: Option<String>,
    /// Whether the tables go to docs/rooted.md.
    write: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Options> {
        let mut options = Options { seconds: 2, only: None, write: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--seconds" => options.seconds = value()?.parse().context("--seconds")?,
                "--only" => options.only = Some((*value()?).to_owned()),
                "--write" => options.write = true,
                other => bail!("no such option of bench matrix: {other}"),
            }
        }
        ensure!(options.seconds > 0, "seconds start at 1");
        Ok(options)
    }
}

/// What stands below the tables: why cells are what they are.
const NOTES: &str = "
## Known gaps

- **static musl, 32 bits, assembly without tables**: the code in which these stacks end has no tables, or
  is of a kind that flame does not unwind. `flame doctor` says so before, the summary after.
- **A handler on another stack**: the interrupted stack is not in the copy. A reader on the sampled CPU
  reads it while the thread stands still, which needs root or capabilities; off CPU, the thread has left that
  CPU when the reader looks.
- **500 levels of recursion** take more than the 16 KiB that are copied. On a busy machine some readers come too
  late for the rest, above all with `-a`; the summary counts them.
- **`--call-graph fp`** follows frame pointers, which only Go and programs built for it have.
";

/// Records every kind as every user in every mode, and prints a table a user.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    ensure!(nix::unistd::geteuid().is_root(), "only root can record as everybody: use sudo");
    in_directory(|directory| {
        let flame = recording::Flame::prepare(&build_flame()?, directory)?;
        let (kinds, missing) = kinds::build(directory, options.only.as_deref())?;
        ensure!(!kinds.is_empty(), "--only: no such kind");
        let mut text = String::new();
        for user in User::ALL {
            let _level = user.set_level()?;
            let _ =
                write!(text, "\n## {}\n\n{}", user.name(), table(&flame, &kinds, user, &options)?);
        }
        if !missing.is_empty() {
            let _ = writeln!(text, "\nCould not be built: {}.", missing.join("; "));
        }
        print!("{text}");
        if options.write {
            fs::write(docs(), format!("{}{text}{NOTES}", head(&options)?))
                .context("docs/rooted.md")?;
        }
        Ok(())
    })
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rooted.md")
}

/// What stands above the tables.
fn head(options: &Options) -> Result<String> {
    let line = |command: &str, arguments: &[&str]| -> Result<String> {
        let mut command = std::process::Command::new(command);
        Ok(rooted::stdout(command.args(arguments))?.trim().to_owned())
    };
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').nth(1).unwrap_or_default();
    Ok(format!(
        "# What reaches its root\n\n\
         The share of the stacks, in percent, that show a program from its outermost function on: made by\n\
         `cargo xtask bench matrix --write` on {} (Linux {}, a load of {load} in the end; {} s of each\n\
         program at 499 Hz). Every program burns and sleeps in `inner`, which `outer` calls; see\n\
         `xtask/src/bench/matrix.rs`. What is not rooted stands under `[truncated stack]`, unless the cell says\n\
         that so many percent are **wrong**: without their root, and not told apart from what has one. With\n\
         frame pointers flame cannot know where a stack ends, and its summary says so.\n",
        line("date", &["-I"])?,
        line("uname", &["-r"])?,
        options.seconds
    ))
}

/// One row a kind, one column a mode.
fn table(
    flame: &recording::Flame,
    kinds: &[Kind],
    user: User,
    options: &Options,
) -> Result<String> {
    let modes = user.modes();
    let mut text = "| program |".to_owned();
    modes.iter().for_each(|mode| text.push_str(&format!(" {} |", mode.name())));
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(modes.len()));
    text.push('\n');
    for kind in kinds {
        let _ = write!(text, "| {} |", kind.name);
        for mode in modes {
            let span = Duration::from_secs(options.seconds);
            let what = || format!("{}, {}, {}", user.name(), kind.name, mode.name());
            let recording = Recording { flame, user, mode: *mode, span };
            let cell = match recording.of(kind) {
                Ok(folded) => Judged::of(&folded, kind).cell(*mode),
                Err(error) if format!("{error:#}").contains(": permission denied") => {
                    "not permitted".to_owned()
                }
                Err(error) => {
                    eprintln!("{}: {error:#}", what());
                    "failed".to_owned()
                }
            };
            eprintln!("   {}: {cell}", what());
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    Ok(text)
}

/// What a recording has of one program, by weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Judged {
    /// Lines of folded text, to tell whether the shares mean anything where weights are times.
    stacks: u64,
    all: u64,
    rooted: u64,
    /// Not rooted, and not marked as truncated either.
    wrong: u64,
}

impl Judged {
    fn of(folded: &str, kind: &Kind) -> Judged {
        let mut judged = Judged::default();
        for (path, weight) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
            let frames: Vec<&str> = path.split(';').collect();
            let Some((root, frames)) = frames.split_first() else { continue };
            if *root != kind.comm || frames == [UNSEEN] {
                continue;
            }
            let weight: u64 = weight.parse().unwrap_or(0);
            judged.stacks += 1;
            judged.all += weight;
            if is_rooted(frames, kind) {
                judged.rooted += weight;
            } else if frames.first() != Some(&TRUNCATED) {
                judged.wrong += weight;
            }
        }
        judged
    }

    fn cell(self, mode: Mode) -> String {
        let percent = |part: u64| part as f64 * 100.0 / self.all as f64;
        let few = match mode {
            Mode::OffCpu => self.stacks == 0,
            _ => self.all < FEWEST,
        };
        match (few, percent(self.wrong)) {
            (true, _) => "too few samples".to_owned(),
            (_, wrong) if wrong >= 0.05 && mode != Mode::FramePointers => {
                format!("{:.1} (**{wrong:.1} wrong**)", percent(self.rooted))
            }
            _ => format!("{:.1}", percent(self.rooted)),
        }
    }
}

fn is_rooted(frames: &[&str], kind: &Kind) -> bool {
    let is_called = |frame: &str, name: &str| {
        let name_of = frame.split_once("_[").map_or(frame, |(name, _)| name);
        name_of.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
    };
    let outermost = frames.first().copied().unwrap_or_default();
    if outermost == TRUNCATED {
        return false;
    }
    let mut left = frames.iter();
    if kind.chain.iter().all(|name| left.any(|frame| is_called(frame, name))) {
        return true;
    }
    // What shows `inner` has to show how it was called.
    if frames.iter().any(|frame| is_called(frame, "inner")) {
        return false;
    }
    match outermost.ends_with("_[k]") {
        true => rooted::has_no_user_stack(frames.iter().copied()),
        false => rooted::is_root_name(outermost) || kind.roots.contains(&outermost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> Kind {
        let command = Vec::new();
        Kind { name: "C", comm: "c", chain: ["main", "outer", "inner"], roots: &["go"], command }
    }

    #[test]
    fn what_is_neither_rooted_nor_marked_is_wrong() {
        let folded = "c;_start;main;LA;::outer_[j];a::inner_[s] 50\nc;[truncated stack];main;outer;inner 20\n\
                      c;outer;inner 10\nc;_start;main;inner 5\nc;go;init 7\nc;f 3\nd;f 9\n\
                      c;[waiting since before the recording] 8\n";
        let expect = Judged { stacks: 6, all: 95, rooted: 57, wrong: 18 };
        assert_eq!(Judged::of(folded, &kind()), expect);
        assert_eq!(expect.cell(Mode::Attached), "60.0 (**18.9 wrong**)");
        assert_eq!(expect.cell(Mode::FramePointers), "60.0");
        assert_eq!(Judged::default().cell(Mode::OffCpu), "too few samples");
    }

    #[test]
    fn stacks_of_the_kernel_alone_are_rooted_where_a_task_has_no_other() {
        let folded = "c;do_syscall_64_[k];do_exit_[k] 30\nc;do_syscall_64_[k];nanosleep_[k] 10\n";
        let expect = Judged { stacks: 2, all: 40, rooted: 30, wrong: 10 };
        assert_eq!(Judged::of(folded, &kind()), expect);
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(Options::parse(&["--fast"]).is_err());
        assert!(Options::parse(&["--seconds"]).is_err());
        assert!(Options::parse(&["--seconds", "0"]).is_err());
        let options = Options::parse(&["--seconds", "3", "--only", "Go", "--write"]).unwrap();
        assert_eq!((options.seconds, options.only.as_deref()), (3, Some("Go")));
    }
}
