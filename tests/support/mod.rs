//! What the end-to-end tests share: programs, the flame binary, folded text, statistics.

pub(crate) mod callers;
mod cgroup;
mod flame;
mod folded;
mod live;
mod programs;
mod scratch;
pub(crate) mod scripts;
mod statistics;
mod target;

pub(crate) use cgroup::Group;
pub(crate) use flame::{Ended, NOWHERE, Running};
pub(crate) use flame::{complete_share, incomplete_stacks, unread_stacks};
pub(crate) use flame::{finish, flame, record, record_nowhere, run, start};
pub(crate) use folded::Folded;
pub(crate) use live::{live, live_as_root};
pub(crate) use programs::{Build, program, program_built};
pub(crate) use scratch::Scratch;
pub(crate) use statistics::{assert_count, assert_share};
pub(crate) use target::{Target, wait_until, wait_within};
