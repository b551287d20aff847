//! One answer of the doctor, and all of them.

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It works.
    Ok,
    /// It works in part.
    Limited,
    /// It does not work.
    Missing,
}

impl Status {
    /// The word for it, in listings and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "missing",
        }
    }
}

/// What a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Which events the kernel opens.
    Events,
    /// Names of kernel functions.
    Kernel,
    /// The kernel's limits.
    Limits,
    /// What this user may do besides opening events.
    Rights,
    /// The target itself.
    Process,
    /// The programs and libraries that it has mapped.
    Images,
}

impl Group {
    /// The word for it in JSON; stable.
    pub fn word(self) -> &'static str {
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
    pub fn title(self) -> &'static str {
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
pub struct Check {
    /// What it is, such as `kernel stacks` or the path of a library.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// What was found, and where it is not as it should be, why.
    pub found: String,
    /// The command that mends it.
    pub fix: Option<String>,
    /// Whether a profile is incomplete without.
    pub needed: bool,
}

impl Check {
    fn new(status: Status, name: impl Into<String>, found: impl Into<String>) -> Check {
        Check { name: name.into(), status, found: found.into(), fix: None, needed: true }
    }

    /// It works.
    pub fn ok(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(Status::Ok, name, found)
    }

    /// It works in part.
    pub fn limited(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(Status::Limited, name, found)
    }

    /// It does not work.
    pub fn missing(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(Status::Missing, name, found)
    }

    /// With the command that mends it.
    pub fn fix(mut self, command: impl Into<String>) -> Check {
        self.fix = Some(command.into());
        self
    }

    /// A profile is complete without it.
    pub fn optional(mut self) -> Check {
        self.needed = false;
        self
    }

    /// Whether it keeps a profile from being complete.
    pub fn is_in_the_way(&self) -> bool {
        self.needed && self.status != Status::Ok
    }
}

/// A process in a line.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its number.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// Whom it belongs to.
    pub user: Option<u32>,
    /// How many it has.
    pub threads: usize,
}

/// Everything that was found, in the order of the listing.
#[derive(Clone, Debug)]
pub struct Report {
    /// The process that was looked at.
    pub target: Option<Facts>,
    /// Each check with what it belongs to.
    pub checks: Vec<(Group, Check)>,
}

impl Report {
    /// Whether nothing is in the way of a complete profile.
    pub fn is_complete(&self) -> bool {
        !self.checks.iter().any(|(_, check)| check.is_in_the_way())
    }
}
