//! `flame doctor`: its arguments as they are typed.

use clap::Args;
use flame_profile::Pid;

use super::record::pid;

const EXAMPLES: &str = "\
Examples:
  flame doctor                  this machine and this user
  flame doctor -p 4242          and whether process 4242 can be recorded completely
  flame doctor --json | jq '.checks[] | select(.status != \"ok\")'";

/// Say what can be recorded here, and which command fixes what cannot
///
/// Every event is really opened and every file really read; nothing is inferred from a setting that
/// can be tried. The exit status is 0 if a profile of the target (without -p: of your own processes)
/// would be complete, and 1 if something is in its way.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Look at this process, too: rights, runtime, unwind tables and names of what it has mapped
    #[arg(short, long, value_name = "PID", value_parser = pid)]
    pub(crate) pid: Option<Pid>,

    /// Print JSON instead, in the form that docs/doctor.md describes
    #[arg(long)]
    pub(crate) json: bool,
}
