//! Kernels out of the distribution's packages, for this architecture and others, without installing
//! anything: apt gets directories of its own below target/vm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::machine::Arch;

/// A kernel that was unpacked.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// As uname says it.
    pub(super) release: String,
    pub(super) image: PathBuf,
}

/// The newest kernel of a series such as `6.1.` that the archive has.
pub(super) fn kernel(directory: &Path, arch: Arch, series: &str) -> Result<Kernel> {
    let release = Apt::new(directory, arch)?.newest(series)?;
    let package = format!("linux-image-{release}");
    let image = file_of(directory, arch, &package, &format!("boot/vmlinuz-{release}"))?;
    Ok(Kernel { release, image })
}

/// A file out of a package, which is downloaded and unpacked at its first use.
pub(super) fn file_of(directory: &Path, arch: Arch, package: &str, file: &str) -> Result<PathBuf> {
    let place = directory.join("packages").join(format!("{package}-{}", arch.debian()));
    let path = place.join(file);
    if !path.exists() {
        let archive = Apt::new(directory, arch)?.download(package)?;
        fs::create_dir_all(&place)?;
        let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -x -C \"$2\" \"./$3\"";
        let mut unpack = Command::new("sh");
        run(unpack.args(["-c", script, "sh"]).arg(&archive).arg(&place).arg(file))?;
        fs::remove_file(archive)?;
    }
    Ok(path)
}

/// apt for one architecture.
struct Apt {
    arch: Arch,
    directory: PathBuf,
}

impl Apt {
    /// Reads the archive's lists where that was not done before.
    fn new(directory: &Path, arch: Arch) -> Result<Apt> {
        let directory = directory.join("apt").join(arch.debian());
        let apt = Apt { arch, directory };
        let done = apt.directory.join("updated");
        if !done.exists() {
            for part in ["lists/partial", "cache/archives/partial"] {
                fs::create_dir_all(apt.directory.join(part))?;
            }
            fs::write(apt.directory.join("status"), "")?;
            run(apt.command("apt-get").arg("update")).context("the archive cannot be reached")?;
            fs::write(done, "")?;
        }
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let place = |name: &str| self.directory.join(name).display().to_string();
        let arch = self.arch.debian();
        for option in [
            format!("APT::Architecture={arch}"),
            format!("APT::Architectures={arch}"),
            format!("Dir::State::Lists={}", place("lists")),
            format!("Dir::State::status={}", place("status")),
            format!("Dir::Cache={}", place("cache")),
            "APT::Sandbox::User=root".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command.arg("-qq");
        command
    }

    /// The release of the newest kernel of a series.
    fn newest(&self, series: &str) -> Result<String> {
        let listed = self.command("apt-cache").args(["pkgnames", "linux-image-"]).output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let ending = format!("-{}", self.arch.debian());
        let release = |name: &&str| {
            let version = name.strip_prefix("linux-image-")?.strip_suffix(&ending)?;
            // Neither the cloud kernel nor the real-time one, nor the name that stands for a series.
            let plain = version.starts_with(series) && !version.contains(char::is_alphabetic);
            let backport = version.starts_with(series) && version.contains("+deb");
            let flavour = version.contains("-cloud") || version.contains("-rt");
            ((plain || backport) && !flavour).then(|| format!("{version}{ending}"))
        };
        let newest = listed.lines().filter_map(|name| release(&name)).max_by_key(|release| {
            release
                .split(|c: char| !c.is_ascii_digit())
                .map(str::parse::<u32>)
                .map(Result::ok)
                .collect::<Vec<_>>()
        });
        newest.with_context(|| {
            format!("the archive has no kernel {series}* for {}", self.arch.debian())
        })
    }

    fn download(&self, package: &str) -> Result<PathBuf> {
        run(self.command("apt-get").args(["download", package]).current_dir(&self.directory))?;
        let mut files = fs::read_dir(&self.directory)?.flatten().map(|entry| entry.path());
        let name = format!("{package}_");
        let is_it = |path: &PathBuf| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name))
        };
        files.find(is_it).with_context(|| format!("apt-get download {package} left no file"))
    }
}

/// Runs a command that says nothing while all is well.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let said = command.stdin(Stdio::null()).output();
    let said = said.with_context(|| format!("cannot run {command:?}"))?;
    if !said.status.success() {
        bail!("{command:?}: {}\n{}", said.status, String::from_utf8_lossy(&said.stderr));
    }
    Ok(())
}
