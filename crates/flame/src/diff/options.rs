//! Options that pictures and reports of one profile have, and those of comparisons have not.
//!
//! An option that would change nothing is refused: whoever gives it expects something of it.

use std::io::IsTerminal;
use std::path::PathBuf;

use crate::cli::{Cli, DiffArgs, REFUSED};
use crate::message::Failure;
use crate::output::{Defaults, Format, Outputs};

const SUMS: &str = "the stacks of both sides are summed up and stand in the order of their names";
const SCALED: &str = "both sides are made comparable already, by a factor that is printed";
const COLOURS: &str = "the colours of a comparison say what grew and what shrank";
const TABLE: &str = "the table of a comparison has functions only, those that really changed";

/// The outputs, checked. The table goes to stdout unless something else is asked for.
pub(super) fn prepare(args: &DiffArgs, cli: &Cli) -> Result<Outputs, Failure> {
    refuse_senseless(args)?;
    let on_stdout = match (args.json, args.markdown) {
        (true, _) => Format::Json,
        (_, true) => Format::Markdown,
        _ if std::io::stdout().is_terminal() => Format::Terminal,
        _ => Format::Text,
    };
    let mut output = args.output.clone();
    if !output.output.is_empty() && (args.json || args.markdown) {
        output.output.push(PathBuf::from("-"));
    }
    let defaults = Defaults::of(on_stdout, false);
    let outputs = Outputs::prepare(&output, &args.picture, cli, defaults)?;
    let refused = outputs
        .formats()
        .find(|format| matches!(format, Format::Pprof | Format::Csv) || format.shows_times());
    if let Some(format) = refused {
        let what = format!("a comparison cannot be written as {}", format.name());
        return Err(
            Failure::usage(what).why("flame diff writes .svg, .folded, .txt, .json and .md")
        );
    }
    refuse_view_without_picture(args, &outputs)?;
    Ok(outputs)
}

/// Options that would make weights that cannot be compared, or would be left out.
fn refuse_senseless(args: &DiffArgs) -> Result<(), Failure> {
    let picture = &args.picture;
    let scaling = "--no-normalize, --by-time or --per FUNCTION";
    let colours = "--colors-diff safe";
    let table = "--all, --limit NUMBER, or a call tree of one profile: flame render PROFILE";
    let given = [
        ("--flamechart", picture.flamechart, SUMS, None),
        ("--heatmap", picture.heatmap, SUMS, None),
        ("--no-sort", picture.no_sort, SUMS, None),
        ("--total", picture.total.is_some(), SCALED, Some(scaling)),
        ("--factor", picture.factor.is_some(), SCALED, Some(scaling)),
        ("--cp", picture.cp.is_some(), COLOURS, Some(colours)),
        ("--colors", picture.colors.is_some(), COLOURS, Some(colours)),
        ("--hash", picture.hash, COLOURS, Some(colours)),
        ("--random", picture.random, COLOURS, Some(colours)),
        ("--colordiffusion", picture.colordiffusion, COLOURS, Some(colours)),
        (
            "--negate",
            picture.negate,
            "red grew from before to after in all views, whatever their widths are",
            Some(
                "--view before, for the widths of before, or the two profiles the other way round",
            ),
        ),
        ("--min-share", picture.min_share.is_some(), TABLE, Some(table)),
        ("--flat", picture.flat, TABLE, Some(table)),
        (
            "--around",
            picture.around.is_some(),
            "a picture of two profiles has one graph per side",
            Some("--callers FUNCTION or --base FUNCTION"),
        ),
    ];
    debug_assert!(given.iter().all(|(option, ..)| REFUSED.contains(&&*id(option))));
    debug_assert_eq!(given.len(), REFUSED.len());
    match given.into_iter().find(|(_, given, ..)| *given) {
        Some((option, _, why, instead)) => {
            let refused = Failure::usage(format!("{option} is not for comparisons")).why(why);
            Err(instead.into_iter().fold(refused, Failure::or_try))
        }
        None => Ok(()),
    }
}

/// `no_sort` for `--no-sort`.
fn id(option: &str) -> String {
    option.trim_start_matches('-').replace('-', "_")
}

fn refuse_view_without_picture(args: &DiffArgs, outputs: &Outputs) -> Result<(), Failure> {
    let given = [("--view", args.view.is_some()), ("--color-by", args.color_by.is_some())];
    let given = given.into_iter().find(|(_, given)| *given);
    match given.filter(|_| outputs.formats().all(|format| format != Format::Svg)) {
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} is for pictures, and none is written"))
                .or_try("-o diff.svg"))
        }
        None => Ok(()),
    }
}
