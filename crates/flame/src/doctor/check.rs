//! One answer of the doctor, and all of them.

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It works.
    Ok,
    /// It works in part.
    Limited,
    /// It does not work.
    Missing,
}

impl Status {
    /// The word for it, in listings and in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "missing",
        }
    }
}

/// What a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Events,
    Kernel,
    Limits,
    Rights,
    Process,
    Images,
}

impl Group {
    /// The word for it in JSON; stable.
    pub(super) fn word(self) -> &'static str {
        match self {
            Group::Events => "events",
            Group::Kernel => "kernel",
            Group::Limits => "limits",
            Group::Rights => "rights",
            Group::Process => "process",
            Group::Images => "images",
        }
    }

    /// The headline in the listing.
    pub(super) fn title(self) -> &'static str {
        match self {
            Group::Events => "Events",
            Group::Kernel => "Kernel symbols",
            Group::Limits => "Limits",
            Group::Rights => "Rights",
            Group::Process => "The process",
            Group::Images => "Its programs and libraries",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// What it is, such as `kernel stacks` or the path of a library.
    pub(super) name: String,
    pub(super) status: Status,
    /// What was found, and where it is not as it should be, why.
    pub(super) found: String,
    /// The command that mends it.
    pub(super) fix: Option<String>,
    /// Whether a profile is incomplete without.
    pub(super) needed: bool,
}

impl Check {
    fn new(status: Status, name: impl Into<String>, found: impl Into<String>) -> Check {
        Check { name: name.into(), status, found: found.into(), fix: None, needed: true }
    }

    /// It works.
    pub(super) fn ok(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(Status::Ok, name, found)
    }

    /// It works in part.
    pub(super) fn limited(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(Status::Limited, name, found)
    }

    /// It does not work.
    pub(super) fn missing(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(Status::Missing, name, found)
    }

    /// With the command that mends it.
    pub(super) fn fix(mut self, command: impl Into<String>) -> Check {
        self.fix = Some(command.into());
        self
    }

    /// A profile is complete without it.
    pub(super) fn optional(mut self) -> Check {
        self.needed = false;
        self
    }

    /// Whether it keeps a profile from being complete.
    pub(super) fn is_in_the_way(&self) -> bool {
        self.needed && self.status != Status::Ok
    }
}

/// A process in a line.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) user: Option<u32>,
    pub(super) threads: usize,
}

/// Everything that was found, in the order of the listing.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) target: Option<Facts>,
    pub(super) checks: Vec<(Group, Check)>,
}

impl Report {
    /// Whether nothing is in the way of a complete profile.
    pub(super) fn is_complete(&self) -> bool {
        !self.checks.iter().any(|(_, check)| check.is_in_the_way())
    }
}
