//! `--mode` of system calls and memory, and what else a recording of tracepoints may measure: bytes,
//! occurrences, or the time between two.

use flame_recorder::{Argument, Calls, CallsError, RecorderConfig, Weighing, switches_of};
use flame_sampler::{ParseEventError, TracepointError};

use super::plan::asked_rate;
use crate::cli::{Mode, SamplingArgs};
use crate::message::Failure;

/// Sets what the mode, --weight or --pair measure; nothing for other modes.
pub(super) fn set(config: &mut RecorderConfig, sampling: &SamplingArgs) -> Result<(), Failure> {
    let calls = calls_of(sampling)?;
    let (name, event, weighing) = if let Some(field) = &sampling.weight {
        match config.sampler.event.take() {
            Some(function) if function.is_function() => {
                config.options.arguments = vec![argument(field)?];
                config.options.adds_up = true;
                (&**field, function, Weighing::Occurrences)
            }
            Some(event) if event.is_tracepoint() => {
                (&**field, event, Weighing::Field(field.clone()))
            }
            _ => {
                let what = "--weight takes a field of a tracepoint or an argument of a function";
                return Err(
                    Failure::new(what).why("other events carry no value that could be added up")
                );
            }
        }
    } else if let Some(pair) = &sampling.pair {
        let [enter, exit] = pair.0.as_slice() else {
            return Err(Failure::usage("--pair takes two events: ENTER,EXIT"));
        };
        (&*enter.name, exit.clone(), Weighing::Since(vec![enter.clone()]))
    } else if let Some(calls) = calls {
        let by = sampling.measure.map_or(calls.usual_measure(), Into::into);
        let (event, weighing) = calls.sampled(by).map_err(|error| refused(&error, calls))?;
        (calls.name(), event, weighing)
    } else {
        return Ok(());
    };
    let measured = config.measure(name, event, weighing, asked_rate(sampling));
    measured.map_err(|error| refused(&error, Calls::Brk))
}

/// The calls that a mode measures; `None` for modes that are made of something else.
fn calls_of(sampling: &SamplingArgs) -> Result<Option<Calls>, Failure> {
    Ok(Some(match sampling.mode {
        Some(Mode::Io) => Calls::Io,
        Some(Mode::BlockIo) => Calls::BlockIo,
        Some(Mode::Syscalls) => Calls::Syscalls,
        Some(Mode::Brk) => Calls::Brk,
        Some(Mode::Mmap) => Calls::Mmap,
        Some(Mode::Locks) => Calls::Locks,
        _ if sampling.measure.is_none() => return Ok(None),
        _ => {
            return Err(Failure::new(
                "--measure is for --mode io, block-io, syscalls, mmap, brk and locks",
            )
            .why(
                "other modes have one measure; -e counts events or adds up a field by --weight, and \
                 --pair measures the time between two events",
            ));
        }
    }))
}

/// What cannot be measured of calls.
pub(super) fn refused(error: &CallsError, calls: Calls) -> Failure {
    let not_by =
        |measure| Failure::new(format!("--mode {} is not measured by {measure}", calls.name()));
    match error {
        CallsError::NotMeasured if matches!(calls, Calls::Syscalls | Calls::Locks) => {
            not_by("bytes").or_try("--mode io, for calls that read and write")
        }
        CallsError::NotMeasured => {
            not_by("latency").or_try("--mode io --measure latency, or --mode off-cpu")
        }
        CallsError::Event(error) => {
            let failure = Failure::new(error.to_string());
            match error {
                ParseEventError::Tracepoint(TracepointError::NotReadable) => {
                    failure.why("this mode samples tracepoints").or_again_with("sudo")
                }
                _ => failure,
            }
        }
        CallsError::Field(error) => Failure::usage(error.to_string()),
        CallsError::EachCounts => Failure::usage("--mode brk takes neither -F nor -c")
            .why("growth is measured from one call to the next: none may be left out")
            .or_try("--measure count"),
    }
}

/// The kernel's filter for switches away from threads in these states.
pub(super) fn filter_of(letters: &str) -> Result<String, Failure> {
    switches_of(letters).ok_or_else(|| {
        let unknown = letters.chars().find(|letter| switches_of(&letter.to_string()).is_none());
        Failure::usage(match unknown {
            Some(letter) => format!("no thread waits in state '{letter}'"),
            None => "--state names no state".to_owned(),
        })
        .why("S may be interrupted, D may not (disks), R is preempted, T stopped, I idle")
    })
}

/// `arg1` to `arg6`.
fn argument(text: &str) -> Result<Argument, Failure> {
    let number = text.strip_prefix("arg").and_then(|number| number.parse::<usize>().ok());
    let number = number.filter(|number| (1..=6).contains(number));
    let number = number.ok_or_else(|| {
        Failure::usage(format!("a function has no argument '{text}': they are arg1 to arg6"))
    })?;
    Ok(Argument::One(number - 1))
}
