use super::*;

const ID: &str = "4f66ad9fd8d1c1a7b2c3";

/// A directory that looks like a mounted hierarchy; removed at the end.
struct Mount(PathBuf);

impl Mount {
    fn new(name: &str, groups: &[&str]) -> Mount {
        let path = std::env::temp_dir().join(format!("flame-{name}-{}", std::process::id()));
        for group in groups {
            fs::create_dir_all(path.join(group)).unwrap();
            fs::write(path.join(group).join("cgroup.procs"), "").unwrap();
        }
        Mount(path)
    }

    #[track_caller]
    fn check(&self, name: &str, expect: &str) {
        let found = Cgroup::find_below(&self.0, name).unwrap();
        assert_eq!(found.path(), self.0.join(expect));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn groups_are_found_by_path_and_containers_by_id() {
    let docker = format!("system.slice/docker-{ID}.scope");
    let crio = format!("kubepods/pod1/crio-{}", ID.replace("4f", "5f"));
    let mount = Mount::new("groups", &["system.slice/nginx.service", &docker, &crio]);
    mount.check("system.slice/nginx.service", "system.slice/nginx.service");
    mount.check("/system.slice/nginx.service", "system.slice/nginx.service");
    let whole = mount.0.join("system.slice/nginx.service").display().to_string();
    mount.check(&whole, "system.slice/nginx.service");
    mount.check(ID, &docker);
    mount.check(&ID[..12], &docker);
    mount.check("5f66ad9fd8d1", &crio);
}

#[test]
fn what_is_not_there_or_not_unique_is_refused() {
    let groups = [format!("a/docker-{ID}.scope"), format!("b/docker-{ID}0.scope")];
    let mount = Mount::new("ambiguous", &[&groups[0], &groups[1]]);
    let find = |name| Cgroup::find_below(&mount.0, name);
    assert!(matches!(find(ID), Err(CgroupError::Ambiguous { groups, .. }) if groups.len() == 2));
    assert!(matches!(find("4f66"), Err(CgroupError::NotFound { .. })), "too short for an id");
    assert!(matches!(find("no/such"), Err(CgroupError::NotFound { .. })));
    assert!(matches!(find("../../../../../proc"), Err(CgroupError::NotFound { .. })));
}

#[test]
fn the_hierarchy_is_that_of_the_perf_event_controller() {
    let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
    assert_eq!(hierarchy(v2), Some(PathBuf::from("/sys/fs/cgroup")));
    let v1 = "cgroup /sys/fs/cgroup/perf_event cgroup rw,perf_event 0 0\n";
    assert_eq!(hierarchy(&format!("{v2}{v1}")), Some("/sys/fs/cgroup/perf_event".into()));
    assert_eq!(hierarchy("proc /proc proc rw 0 0\n"), None);
}
