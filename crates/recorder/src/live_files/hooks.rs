//! What the caller has done in the processes that open files.

use std::os::fd::OwnedFd;

/// What a worker can be started for besides files: it gets what was asked, and the socket for its
/// answer, which closes when flame ends.
pub type Job = fn(&[u8], &OwnedFd);

/// What the caller has done in the processes that are started for files.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Called in each of them before it does anything: gives up the rights that are of no use for
    /// its duty. The default leaves all.
    pub keep_rights_for: fn(Duty),
    /// Opens a debug file, by calling what it is given: with the rights of who names its directory.
    /// The default is to call it.
    pub open_debug_file: fn(&mut dyn FnMut()),
    /// What [`crate::LiveFiles::start_job`] starts. The default is nothing.
    pub job: Option<Job>,
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks { keep_rights_for: |_| {}, open_debug_file: |open| open(), job: None }
    }
}

/// What a process is for that opens files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Files of targets, and starting workers for [`Hooks::job`].
    FilesAndJob,
    /// Files of targets.
    Files,
    /// Files of images that are known already: the recording is over.
    DebugFiles,
}
