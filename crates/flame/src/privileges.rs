//! Gives up what flame may do beyond its user as soon as it is not needed any more.
//!
//! ```text
//!   start            everything that the caller gave flame; what who is not root names is opened
//!                    with nothing in effect
//!   events are open  what opening more events and looking at targets takes; what the outputs take
//!                    is kept, but out of effect
//!   names            reading files of others, and what the outputs take
//!   outputs          what was kept for them is in effect again
//!
//! What is out of effect is of no use to a path or a link that leads flame astray, and it takes one
//! call to have it back.
//! ```
//!
//! Commands that do not record drop at once what they have no use for.
//!
//! docs/security.md says what each capability is kept for. They belong to threads: call these
//! before any thread is started that lives on. That a capability cannot be dropped is not a failure:
//! flame then has what it had.
//!
//! Sources: capabilities(7), proc(5) for what the files of a process need.

use caps::{CapSet, Capability, CapsHashSet};
use flame_doctor::rights::{more_rights, own_path, without};
use flame_recorder::{Duty, Hooks, Job};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use crate::message::Failure;
use crate::sudo;

/// For opening events of CPUs that come online, with their rings, and for readers that go before what
/// they look at.
const OPENING: &[Capability] =
    &[Capability::CAP_PERFMON, Capability::CAP_IPC_LOCK, Capability::CAP_SYS_NICE];

/// For reading maps, memory and files of a target, and the addresses of kernel functions.
const LOOKING: &[Capability] =
    &[Capability::CAP_SYS_PTRACE, Capability::CAP_CHECKPOINT_RESTORE, Capability::CAP_SYSLOG];

/// For reading files that only others may read.
const READING: Capability = Capability::CAP_DAC_READ_SEARCH;

/// For becoming another user.
const BECOMING: &[Capability] = &[Capability::CAP_SETUID, Capability::CAP_SETGID];

/// For files where root's users name them, which are root's own by no more than these.
const ROOTS_FILES: &[Capability] = &[
    Capability::CAP_CHOWN,
    Capability::CAP_DAC_OVERRIDE,
    Capability::CAP_DAC_READ_SEARCH,
    Capability::CAP_FOWNER,
    Capability::CAP_SETGID,
    Capability::CAP_SETUID,
];

/// Besides what recording takes, what `doctor` says whether it is there.
const TOLD: &[Capability] = &[Capability::CAP_BPF, Capability::CAP_SYS_ADMIN];

/// Refuses to run with the rights of a file's owner: whoever starts such a program says where it
/// finds its files, and whom it takes for the caller of sudo.
pub(crate) fn refuse_set_user_id() -> Result<(), Failure> {
    if Uid::current() == Uid::effective() && Gid::current() == Gid::effective() {
        return Ok(());
    }
    Err(Failure::new("flame does not run set-user-id or set-group-id")
        .why("everybody who may start it would have the rights of its owner")
        .or_try(format!("sudo chmod ug-s {}", own_path()))
        .or_try(more_rights()))
}

/// For a command that reads and writes what its user names: keeps nothing but what makes root's
/// files root's.
pub(crate) fn keep_for_named_files() {
    keep_at_most(&[]);
}

/// For a command that reads profiles besides: those of `perf record` have addresses in the kernel,
/// whose names it tells only to some. Not for a user who has the right through this binary alone: a
/// file with made-up addresses would be a way to find out where the kernel is.
pub(crate) fn keep_for_profiles() {
    match Uid::current().is_root() {
        true => keep_at_most(&[Capability::CAP_SYSLOG]),
        false => keep_for_named_files(),
    }
}

/// For a command that only looks whether a recording would work.
pub(crate) fn keep_for_doctor() {
    keep_at_most(&[OPENING, LOOKING, &[READING], TOLD].concat());
}

/// Does something with the rights of flame's user alone: opening what that user names.
pub(crate) fn as_user<T>(attempt: impl FnOnce() -> T) -> T {
    let all: Vec<Capability> = caps::all().into_iter().collect();
    without(if Uid::effective().is_root() { &[] } else { &all }, attempt)
}

/// Drops all capabilities of this thread, and of those that it starts.
pub(crate) fn drop_all() {
    restrict_all(&CapsHashSet::new());
}

/// Does something on a thread without any capability.
#[cfg(feature = "debuginfod")]
pub(crate) fn on_bare_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let result = std::thread::scope(|scope| {
        let bare = || {
            drop_all();
            work()
        };
        scope.spawn(bare).join()
    });
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Leaves those, and for root what it reads and writes files with.
fn keep_at_most(kept: &[Capability]) {
    let roots = if Uid::effective().is_root() { ROOTS_FILES } else { &[] };
    restrict_all(&kept.iter().chain(roots).copied().collect());
}

fn restrict_all(kept: &CapsHashSet) {
    for set in [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
        restrict(set, kept);
    }
}

/// The events are open: keeps what recording needs in effect, and `aside`, what is needed later to
/// write outputs, out of it. `may_reopen` asks the kernel whether what is in effect lets events be
/// opened.
pub(crate) fn keep_for_recording(aside: &CapsHashSet, may_reopen: impl Fn() -> bool) {
    let mut recording: CapsHashSet = OPENING.iter().chain(LOOKING).copied().collect();
    recording.insert(READING);
    if sudo::invoking_user().is_some() {
        // To end a program that was launched as that user.
        recording.insert(Capability::CAP_KILL);
    }
    if !caps::runtime::thread_all_supported().contains(&Capability::CAP_CHECKPOINT_RESTORE) {
        // Before Linux 5.9 it stood for CAP_PERFMON and CAP_CHECKPOINT_RESTORE.
        recording.insert(Capability::CAP_SYS_ADMIN);
    }
    if needs_admin(&recording, &may_reopen) {
        recording.insert(Capability::CAP_SYS_ADMIN);
    }
    let kept: CapsHashSet = recording.union(aside).copied().collect();
    restrict(CapSet::Effective, &recording);
    restrict(CapSet::Permitted, &kept);
    restrict(CapSet::Inheritable, &CapsHashSet::new());
}

/// Whether events can be opened with CAP_SYS_ADMIN besides `recording`, and not without. The kernels
/// of Debian and Ubuntu ask for it from perf_event_paranoid 3 on, others never; only they know.
fn needs_admin(recording: &CapsHashSet, may_reopen: &impl Fn() -> bool) -> bool {
    if !caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap_or(false) {
        return false;
    }
    let others: Vec<Capability> = caps::all().difference(recording).copied().collect();
    may_reopen() && !without(&others, may_reopen)
}

/// The recording is over, and everything of running processes was read: before files of theirs are
/// parsed, and before a network is asked for others. Nothing that flame might start from now on
/// gains rights either. Who is not root has none left.
pub(crate) fn keep_for_naming() {
    let Ok(mut kept) = caps::read(None, CapSet::Permitted) else { return };
    if !Uid::effective().is_root() {
        kept.clear();
    }
    for capability in OPENING.iter().chain(LOOKING) {
        kept.remove(capability);
    }
    kept.remove(&Capability::CAP_SYS_ADMIN);
    let naming: CapsHashSet = [READING, Capability::CAP_KILL].into_iter().collect();
    restrict(CapSet::Effective, &naming.intersection(&kept).copied().collect());
    restrict(CapSet::Permitted, &kept);
    if let Err(error) = nix::sys::prctl::set_no_new_privs() {
        tracing::debug!(%error, "new privileges cannot be ruled out");
    }
}

/// A process that opens files and does nothing else: keeps what that takes.
pub(crate) fn keep_for(duty: Duty) {
    match duty {
        Duty::FilesAndJob => keep_for_files(true),
        Duty::Files => keep_for_files(false),
        Duty::DebugFiles => keep_for_debug_files(),
    }
}

/// The hooks of a recording: what is done in processes that open files.
pub(crate) fn hooks(job: Option<Job>) -> Hooks {
    Hooks { keep_rights_for: keep_for, open_debug_file, job }
}

/// Who is not root may have named a directory of debug files that they may not read.
fn open_debug_file(open: &mut dyn FnMut()) {
    without(if Uid::effective().is_root() { &[] } else { &[READING] }, open);
}

/// For files of targets, and, if the process `becomes` other users for what is done in their name,
/// what that takes.
fn keep_for_files(becomes: bool) {
    let mut kept = CapsHashSet::from([
        Capability::CAP_SYS_PTRACE,
        Capability::CAP_CHECKPOINT_RESTORE,
        READING,
    ]);
    if !caps::runtime::thread_all_supported().contains(&Capability::CAP_CHECKPOINT_RESTORE) {
        kept.insert(Capability::CAP_SYS_ADMIN);
    }
    if becomes {
        kept.extend(BECOMING);
    }
    keep_only(&kept);
}

/// Becomes a user, of one group, with no right beyond that user's. The process must have one thread.
pub(crate) fn become_user(user: u32, group: u32) -> nix::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    if (Uid::effective(), Gid::effective()) != (user, group) {
        setgroups(&[group])?;
        setresgid(group, group, group)?;
        setresuid(user, user, user)?;
    }
    keep_only(&CapsHashSet::new());
    Ok(())
}

/// When the recording is over: what is opened then belongs to images that are known.
fn keep_for_debug_files() {
    let reading: &[Capability] = if Uid::effective().is_root() { &[READING] } else { &[] };
    keep_only(&reading.iter().copied().collect());
}

/// Leaves those, in effect.
fn keep_only(kept: &CapsHashSet) {
    restrict_all(kept);
    raise_kept();
    if let Err(error) = nix::sys::prctl::set_no_new_privs() {
        tracing::debug!(%error, "new privileges cannot be ruled out");
    }
}

/// Puts into effect what was kept aside.
pub(crate) fn raise_kept() {
    let raised = caps::read(None, CapSet::Permitted)
        .and_then(|kept| caps::set(None, CapSet::Effective, &kept));
    if let Err(error) = raised {
        tracing::debug!(%error, "capabilities cannot be raised");
    }
}

/// Leaves in a set only what is among `kept`.
fn restrict(set: CapSet, kept: &CapsHashSet) {
    let restricted = caps::read(None, set).and_then(|now| {
        let kept: CapsHashSet = now.intersection(kept).copied().collect();
        caps::set(None, set, &kept)
    });
    if let Err(error) = restricted {
        tracing::debug!(%error, "capabilities cannot be dropped");
    }
}
