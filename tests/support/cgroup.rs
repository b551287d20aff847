//! Control groups of the tests' own.

use std::fs;
use std::path::PathBuf;

/// A control group; removed in the end.
pub(crate) struct Group(PathBuf);

impl Group {
    /// `None` where control groups of version 2 are not mounted.
    pub(crate) fn new() -> Option<Group> {
        Some(Group::below(&mount(|kind, _| kind == "cgroup2")?))
    }

    /// One whose processes get that share of one CPU, in slices of 100 ms; `None` where nothing can be limited.
    pub(crate) fn with_quota(percent: u32) -> Option<Group> {
        let (quota, period) = (percent * 1000, 100_000);
        if let Some(mount) = mount(|kind, options| kind == "cgroup" && has_cpu(options)) {
            let group = Group::below(&mount);
            group.write("cpu.cfs_period_us", &period.to_string());
            group.write("cpu.cfs_quota_us", &quota.to_string());
            return Some(group);
        }
        let group = Group::new()?;
        let limits = group.0.join("cpu.max").exists();
        limits.then(|| group.write("cpu.max", &format!("{quota} {period}")))?;
        Some(group)
    }

    fn below(mount: &str) -> Group {
        let path = PathBuf::from(format!("{mount}/flame-test-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Group(path)
    }

    fn write(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap();
    }

    /// What `-G` calls it.
    pub(crate) fn name(&self) -> &str {
        self.0.file_name().unwrap().to_str().unwrap()
    }

    /// The command that runs another one within it.
    pub(crate) fn command(&self, command: &[&str]) -> Vec<String> {
        let inside = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        let start = ["sh", "-c", inside, self.0.to_str().unwrap()];
        start.iter().chain(command).map(|word| (*word).to_owned()).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).unwrap();
    }
}

fn has_cpu(options: &str) -> bool {
    options.split(',').any(|option| option == "cpu")
}

/// The first mount of that kind and those options.
fn mount(is_wanted: impl Fn(&str, &str) -> bool) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    Some(fields.find(|fields| is_wanted(fields[2], fields[3]))?[1].to_owned())
}
