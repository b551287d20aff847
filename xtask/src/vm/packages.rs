//! Kernels out of the distribution's packages, for this architecture and others, without installing
//! anything: apt gets directories of its own below target/vm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::machine::Arch;

/// How old the lists of a suite may be whose packages are replaced often.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The sources of an apt that has not those of this distribution, in its directory.
const SOURCES: &str = "sources.list";

/// The keys that Debian's archive is signed with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A kernel that was unpacked.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// As uname says it.
    pub(super) release: String,
    pub(super) image: PathBuf,
}

/// Which kernel is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The newest of a series such as `6.1.` that this distribution has.
    Series(&'static str),
    /// The newest of all that Debian's unstable suite has: another one every few weeks.
    Unstable,
}

impl Wanted {
    /// What its version begins with.
    fn series(self) -> &'static str {
        match self {
            Wanted::Series(series) => series,
            Wanted::Unstable => "",
        }
    }
}

/// The kernel that is wanted, as the archive has it.
pub(super) fn kernel(directory: &Path, arch: Arch, wanted: Wanted) -> Result<Kernel> {
    let apt = match wanted {
        Wanted::Series(_) => Apt::new(directory, arch)?,
        Wanted::Unstable => Apt::unstable(directory, arch)?,
    };
    let series = wanted.series();
    let release = newest(&apt.names("linux-image-")?, arch, series)
        .with_context(|| format!("the archive has no kernel {series}* for {}", arch.debian()))?;
    // Debian's 7.2 has the image in a package of its own, on which linux-image depends, and not below boot.
    let binary = format!("linux-binary-{release}");
    let image = if apt.names(&binary)?.lines().any(|name| name == binary) {
        apt.file_of(&binary, &format!("usr/lib/modules/{release}/vmlinuz"))?
    } else {
        apt.file_of(&format!("linux-image-{release}"), &format!("boot/vmlinuz-{release}"))?
    };
    Ok(Kernel { release, image })
}

/// A file out of a package of this distribution.
pub(super) fn file_of(directory: &Path, arch: Arch, package: &str, file: &str) -> Result<PathBuf> {
    Apt::new(directory, arch)?.file_of(package, file)
}

/// apt for one architecture, with lists and archives of its own.
struct Apt {
    arch: Arch,
    directory: PathBuf,
    /// Where packages are unpacked.
    unpacked: PathBuf,
}

impl Apt {
    /// With the sources of this distribution. Reads the archive's lists where that was not done before.
    fn new(directory: &Path, arch: Arch) -> Result<Apt> {
        let apt = Apt::at(directory, arch, arch.debian())?;
        if !apt.updated().exists() {
            apt.update()?;
        }
        Ok(apt)
    }

    /// With Debian's unstable suite alone, from the mirror that this distribution has. An archive forgets what it has
    /// replaced, and this suite's packages are replaced often: its lists are read again each day. Where that
    /// is not possible, those that are there have to do.
    fn unstable(directory: &Path, arch: Arch) -> Result<Apt> {
        let apt = Apt::at(directory, arch, &format!("{}-unstable", arch.debian()))?;
        let age = fs::metadata(apt.updated()).and_then(|file| file.modified()).ok();
        let age = age.and_then(|written| written.elapsed().ok());
        if age.is_none_or(|age| age >= DAY) {
            let mirror = Apt::new(directory, arch)?.mirror()?;
            let source = format!("deb [signed-by={KEYRING}] {mirror} unstable main\n");
            fs::write(apt.directory.join(SOURCES), source)?;
            match apt.update() {
                Err(error) if age.is_none() => return Err(error),
                _ => {}
            }
        }
        Ok(apt)
    }

    fn at(directory: &Path, arch: Arch, name: &str) -> Result<Apt> {
        let unpacked = directory.join("packages");
        let apt = Apt { arch, directory: directory.join("apt").join(name), unpacked };
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.directory.join(part))?;
        }
        fs::write(apt.directory.join("status"), "")?;
        Ok(apt)
    }

    /// A file that is as old as the lists.
    fn updated(&self) -> PathBuf {
        self.directory.join("updated")
    }

    fn update(&self) -> Result<()> {
        run(self.command("apt-get").arg("update")).context("the archive cannot be reached")?;
        Ok(fs::write(self.updated(), "")?)
    }

    /// Where this distribution gets Debian's archive from.
    fn mirror(&self) -> Result<String> {
        let mut command = self.command("apt-get");
        command.args(["indextargets", "--format", "$(REPO_URI)"]);
        // Not the archive of security updates, which has no such suite.
        command.args(["Created-By: Packages", "Origin: Debian", "Label: Debian"]);
        let said = String::from_utf8_lossy(&command.output()?.stdout).into_owned();
        let mirror = said.lines().next().context("this distribution is not Debian")?;
        Ok(mirror.to_owned())
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
        let sources = self.directory.join(SOURCES);
        if sources.exists() {
            command.args(["-o", &format!("Dir::Etc::SourceList={}", sources.display())]);
            command.args(["-o", "Dir::Etc::SourceParts=/dev/null"]);
            // It is one source, and nothing without its lists.
            command.args(["-o", "APT::Update::Error-Mode=any"]);
        }
        command.arg("-qq");
        command
    }

    /// The packages whose names begin so, one a line.
    fn names(&self, beginning: &str) -> Result<String> {
        let listed = self.command("apt-cache").args(["pkgnames", beginning]).output()?;
        Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
    }

    /// A file out of a package, which is downloaded and unpacked at its first use.
    fn file_of(&self, package: &str, file: &str) -> Result<PathBuf> {
        let place = self.unpacked.join(format!("{package}-{}", self.arch.debian()));
        let path = place.join(file);
        if !path.exists() {
            let archive = self.download(package)?;
            fs::create_dir_all(&place)?;
            let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -x -C \"$2\" \"./$3\"";
            let mut unpack = Command::new("sh");
            run(unpack.args(["-c", script, "sh"]).arg(&archive).arg(&place).arg(file))?;
            fs::remove_file(archive)?;
        }
        Ok(path)
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

/// The release of the newest kernel of a series, of packages one a line.
fn newest(packages: &str, arch: Arch, series: &str) -> Option<String> {
    let ending = format!("-{}", arch.debian());
    let release = |name: &str| {
        let version = name.strip_prefix("linux-image-")?.strip_suffix(&ending)?;
        // Neither the cloud kernel nor the real-time one, nor the name that stands for a series.
        let plain = version.starts_with(series) && !version.contains(char::is_alphabetic);
        let backport = version.starts_with(series) && version.contains("+deb");
        let flavour = version.contains("-cloud") || version.contains("-rt");
        ((plain || backport) && !flavour).then(|| format!("{version}{ending}"))
    };
    packages.lines().filter_map(release).max_by_key(|release| {
        let numbers = release.split(|c: char| !c.is_ascii_digit());
        numbers.map(str::parse::<u32>).map(Result::ok).collect::<Vec<_>>()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_no_flavour_and_no_name_of_a_series() {
        let packages = "linux-image-6.12.107+deb13-amd64\nlinux-image-6.12.9+deb13-amd64\n\
            linux-image-6.1.0-56-amd64\nlinux-image-6.1.0-9-amd64\nlinux-image-7.2.13+deb14-amd64-dbg\n\
            linux-image-7.2.13+deb14-cloud-amd64\nlinux-image-7.2.9+deb14-amd64\n\
            linux-image-7.2.13+deb14-rt-amd64\nlinux-image-amd64\nlinux-image-cloud-amd64\n\
            linux-image-7.3.1+deb14-amd64-unsigned\nlinux-image-7.2.10+deb14-amd64";
        let newest = |series| newest(packages, Arch::X86, series);
        assert_eq!(newest("").as_deref(), Some("7.2.10+deb14-amd64"));
        assert_eq!(newest("6.12.").as_deref(), Some("6.12.107+deb13-amd64"));
        assert_eq!(newest("6.1.").as_deref(), Some("6.1.0-56-amd64"));
        assert_eq!(newest("5."), None);
    }
}
