//! One recording: as somebody, in one mode.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::target::Target;
use super::kinds::Kind;

const LEVEL: &str = "/proc/sys/kernel/perf_event_paranoid";

/// What somebody who is not root needs to record everything.
const CAPABILITIES: &str = "cap_perfmon,cap_sys_ptrace,cap_sys_nice,cap_syslog=ep";

/// Who records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Root,
    /// A user whose flame has [`CAPABILITIES`].
    Capable,
    /// A user without rights, at that `kernel.perf_event_paranoid`.
    Level(i32),
}

impl User {
    pub(super) const ALL: [User; 4] = [User::Root, User::Capable, User::Level(2), User::Level(1)];

    pub(super) fn name(self) -> String {
        match self {
            User::Root => "root".to_owned(),
            User::Capable => "a user whose flame has capabilities".to_owned(),
            User::Level(level) => format!("a user, kernel.perf_event_paranoid = {level}"),
        }
    }

    /// What somebody may do.
    pub(super) fn modes(self) -> &'static [Mode] {
        match self {
            User::Root | User::Capable => &Mode::ALL,
            User::Level(_) => &[Mode::Launched, Mode::Attached, Mode::OffCpu, Mode::FramePointers],
        }
    }

    /// Sets the kernel's level, until the result is dropped.
    pub(super) fn set_level(self) -> Result<Option<Level>> {
        let User::Level(level) = self else { return Ok(None) };
        let before = fs::read_to_string(LEVEL).context(LEVEL)?;
        if before.trim() == level.to_string() {
            return Ok(None);
        }
        fs::write(LEVEL, level.to_string()).context(LEVEL)?;
        Ok(Some(Level(before)))
    }
}

/// The level that the kernel had before.
#[derive(Debug)]
pub(super) struct Level(String);

impl Drop for Level {
    fn drop(&mut self) {
        if let Err(error) = fs::write(LEVEL, &self.0) {
            eprintln!("{LEVEL} could not be set to {} again: {error}", self.0.trim());
        }
    }
}

/// How a program is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Launched,
    Attached,
    Machine,
    Group,
    OffCpu,
    FramePointers,
}

impl Mode {
    const ALL: [Mode; 6] = [
        Mode::Launched,
        Mode::Attached,
        Mode::Machine,
        Mode::Group,
        Mode::OffCpu,
        Mode::FramePointers,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Launched => "launched",
            Mode::Attached => "`-p`",
            Mode::Machine => "`-a`",
            Mode::Group => "`-G`",
            Mode::OffCpu => "`--mode off-cpu -p`",
            Mode::FramePointers => "`--call-graph fp -p`",
        }
    }
}

/// Copies of flame that everybody reaches.
#[derive(Debug)]
pub(super) struct Flame {
    plain: PathBuf,
    capable: PathBuf,
    /// Where everybody may write.
    outputs: PathBuf,
}

impl Flame {
    pub(super) fn prepare(flame: &Path, directory: &Path) -> Result<Flame> {
        let [plain, capable, outputs] =
            ["flame", "capable", "outputs"].map(|name| directory.join(name));
        for copy in [&plain, &capable] {
            fs::copy(flame, copy).with_context(|| copy.display().to_string())?;
        }
        let status = Command::new("setcap").arg(CAPABILITIES).arg(&capable).status();
        ensure!(status.context("setcap: sudo apt-get install libcap2-bin")?.success(), "setcap");
        fs::create_dir(&outputs)?;
        let all: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&outputs, all)?;
        Ok(Flame { plain, capable, outputs })
    }
}

/// One recording.
#[derive(Debug)]
pub(super) struct Recording<'f> {
    pub(super) flame: &'f Flame,
    pub(super) user: User,
    pub(super) mode: Mode,
    pub(super) span: Duration,
}

impl Recording<'_> {
    /// Records a program of that kind; gives folded text whose roots are the names of processes.
    pub(super) fn of(&self, kind: &Kind) -> Result<String> {
        let output = self.flame.outputs.join("out.folded");
        let _ = fs::remove_file(&output);
        let seconds = self.span.as_secs();
        let flame =
            if self.user == User::Capable { &self.flame.capable } else { &self.flame.plain };
        let mut words: Vec<OsString> = vec![flame.into()];
        words.extend(["record", "-F", "499", "--by", "comm", "-o"].map(OsString::from));
        words.push((&output).into());
        if self.mode == Mode::Launched {
            words.push("--".into());
            words.extend(kind.command(seconds));
            record(&mut self.command(&words))?;
        } else {
            let target = Target::start(&mut self.command(&kind.command(seconds + 600)))?;
            words.extend(["-d".into(), format!("{seconds}s").into()]);
            let group = if self.mode == Mode::Group { Some(Group::of(&target)?) } else { None };
            words.extend(self.options(&target, group.as_ref()));
            let result = record(&mut self.command(&words));
            drop(target);
            result?;
        }
        fs::read_to_string(&output).with_context(|| output.display().to_string())
    }

    /// How flame is told what to record.
    fn options(&self, target: &Target, group: Option<&Group>) -> Vec<OsString> {
        let pid = target.pid().to_string();
        let words: &[&str] = match self.mode {
            Mode::Launched => &[],
            Mode::Machine => &["-a"],
            Mode::Group => {
                return vec!["-G".into(), group.map(|group| (&group.0).into()).unwrap_or_default()];
            }
            Mode::Attached => &["-p", &pid],
            Mode::OffCpu => &["--mode", "off-cpu", "-p", &pid],
            Mode::FramePointers => &["--call-graph", "fp", "-p", &pid],
        };
        words.iter().map(OsString::from).collect()
    }

    /// A command of that user's.
    fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new("setpriv");
        if self.user != User::Root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.args(words).current_dir(&self.flame.outputs).env("HOME", &self.flame.outputs);
        command.stdin(Stdio::null()).env_remove("PYTHONPATH");
        command
    }
}

fn record(command: &mut Command) -> Result<()> {
    let ended = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "{command:?}: {}\n{said}", ended.status);
    Ok(())
}

/// A control group with one process in it; removed on drop.
#[derive(Debug)]
struct Group(PathBuf);

impl Group {
    fn of(target: &Target) -> Result<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = mounts.find(|fields| fields.get(2) == Some(&"cgroup2"));
        let mount = mount.context("control groups of version 2 are not mounted")?;
        let name = format!("flame-bench-{}", std::process::id());
        let group = Group(Path::new(mount.get(1).context("a mount")?).join(name));
        fs::create_dir(&group.0).with_context(|| group.0.display().to_string())?;
        fs::write(group.0.join("cgroup.procs"), target.pid().to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
