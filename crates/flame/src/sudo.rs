//! flame under sudo: who called it, and what that user's programs know of themselves.

use std::ffi::OsString;

use flame_own_files::OwnFiles;
use flame_sampler::Credentials;
use nix::unistd::{Uid, User};

/// The user who called sudo, when flame runs as root by it: SUDO_UID and SUDO_GID. `None` when
/// flame was not called so, or by root.
pub(crate) fn invoking_user() -> Option<Credentials> {
    if !Uid::effective().is_root() {
        return None;
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let uid = number("SUDO_UID").filter(|uid| *uid != 0)?;
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let gid = number("SUDO_GID").or_else(|| user.as_ref().map(|user| user.gid.as_raw()))?;
    let environment = environment(user.as_ref());
    Some(Credentials { uid, gid, name: user.map(|user| user.name), environment })
}

/// What sudo has set for root, as it is for the user. One without an entry in the database of users
/// has no such variables, but for a home that is nobody's.
fn environment(user: Option<&User>) -> Vec<(&'static str, Option<OsString>)> {
    let name = user.map(|user| OsString::from(&user.name));
    let home = user.map_or_else(|| "/".into(), |user| user.dir.clone().into_os_string());
    let shell = user.map(|user| user.shell.clone().into_os_string());
    vec![("HOME", Some(home)), ("USER", name.clone()), ("LOGNAME", name), ("SHELL", shell)]
}

/// The files of flame's user and of the one who called sudo.
pub(crate) fn own_files() -> OwnFiles {
    OwnFiles { caller: invoking_user().map(|user| (user.uid, user.gid)) }
}
