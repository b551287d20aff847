//! `flame diff`: profiles compared.

mod export;
mod gate;
mod inputs;
mod mismatch;
mod names;
mod report;
mod sides;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use flame_diff::{DEFAULT_ALPHA, DiffConfig, DiffError, DiffTree, Run, Scaling};
use flame_profile::write_folded;
use flame_render::{DiffPicture, clean_name, group_thousands, write_diff_svg};

use crate::cli::{Cli, DiffArgs};
use crate::message::{Failure, warn};
use crate::output::{Defaults, Format, Outputs};
use crate::render::say;
use crate::terminal::Paint;
pub(crate) use gate::Gate;
use inputs::{Input, Inputs};
use report::Report;
use sides::Sides;

/// Runs the command.
pub(crate) fn run(args: &DiffArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    let sides = Sides::of(args)?;
    let outputs = prepare(args, cli)?;
    let inputs = Inputs::read(&sides, args, &outputs)?;
    let warnings = mismatch::check(&inputs, args)?;
    let health = inputs.health();
    let tree = compare(inputs, args)?;
    let warnings = warnings.into_iter().chain(mismatch::identical(&tree));
    let warnings = warnings.chain(mismatch::strangers(&tree));
    let warnings = warnings.chain(unknown_functions(&tree, args));
    if !cli.quiet {
        warnings.for_each(|warning| warn(&warning, cli.color));
    }
    let report = Report::new(&tree, args.all, args.limit);
    let (written, failures) = outputs.write_with(&|format, out| match format {
        Format::Svg => write_picture(&report, args, &outputs, &health, out),
        _ => write(&report, args, cli, &outputs, format, out),
    });
    if !cli.quiet {
        say(&written, Paint(cli.color.on_stderr()));
        if !written.is_empty() {
            let _ = writeln!(std::io::stderr(), "{}", report.verdict());
        }
    }
    // An output that could not be written counts more than what it would have said.
    let exceeded = args.fail_if.iter().filter_map(|gate| gate.check(&tree));
    let mut failures = failures.into_iter().chain(exceeded);
    let first = failures.next();
    failures.for_each(|failure| failure.print(cli.color));
    first.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Functions of bounds that no profile has: such a bound is never exceeded.
fn unknown_functions(tree: &DiffTree, args: &DiffArgs) -> Vec<String> {
    let missing = args.fail_if.iter().filter_map(|gate| gate.missing(tree));
    missing
        .map(|name| format!("no function {} for --fail-if in either profile", clean_name(name)))
        .collect()
}

/// The outputs, checked. The table goes to stdout unless something else is asked for.
fn prepare(args: &DiffArgs, cli: &Cli) -> Result<Outputs, Failure> {
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
    let defaults = Defaults { path: "-", keeps_foreign: false, on_stdout };
    let outputs = Outputs::prepare(&output, &args.picture, cli, defaults)?;
    let refused = outputs.formats().find(|format| matches!(format, Format::Pprof | Format::Csv));
    match refused {
        Some(format) => {
            let what = format!("a comparison cannot be written as {}", format.name());
            Err(Failure::usage(what).why("flame diff writes .svg, .folded, .txt, .json and .md"))
        }
        None => Ok(outputs),
    }
}

/// Options of pictures that would make weights or orders that cannot be compared.
fn refuse_senseless(args: &DiffArgs) -> Result<(), Failure> {
    let picture = &args.picture;
    let given = [
        ("--flamechart", picture.flamechart),
        ("--no-sort", picture.no_sort),
        ("--total", picture.total.is_some()),
        ("--factor", picture.factor.is_some()),
        ("--cp", picture.cp.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!("{option} is not for comparisons"))),
        None => Ok(()),
    }
}

fn compare(inputs: Inputs, args: &DiffArgs) -> Result<DiffTree, Failure> {
    let scaling = &args.scaling;
    let scaling = match (&scaling.per, scaling.no_normalize, scaling.by_time) {
        (Some(function), ..) => Scaling::Function(function.clone()),
        (_, true, _) => Scaling::None,
        (_, _, true) => Scaling::Time,
        _ => Scaling::Total,
    };
    let config = DiffConfig { scaling, alpha: args.alpha.unwrap_or(DEFAULT_ALPHA) };
    let runs = |side: Vec<Input>| -> Vec<Run> { side.into_iter().map(|input| input.run).collect() };
    let (before, after) = (runs(inputs.before), runs(inputs.after));
    DiffTree::new(&before, &after, &config).map_err(|error| refused(&error))
}

fn refused(error: &DiffError) -> Failure {
    let failure = Failure::new(format!("cannot compare the profiles: {error}"));
    match error {
        DiffError::NoDuration { .. } => failure
            .why("pprof files may say how long was recorded; folded text does not")
            .or_try("--no-normalize, where both were recorded for the same time"),
        DiffError::NoFunction { function, .. } => {
            Failure::new(format!("cannot scale by {}: {error}", clean_name(function)))
                .or_try("flame render PROFILE --flat --format txt, to see the names")
        }
        DiffError::TooLarge => failure.why("one side has decimal places, the other large numbers"),
        _ => failure,
    }
}

fn write(
    report: &Report<'_>,
    args: &DiffArgs,
    cli: &Cli,
    outputs: &Outputs,
    format: Format,
    mut out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        Format::Folded => {
            write_folded(&report.tree.to_call_tree(), outputs.annotations(), &mut out)
        }
        Format::Json => export::write_json(report.tree, args.limit, out),
        Format::Markdown => export::write_markdown(report, args.picture.title.as_deref(), out),
        Format::Terminal => report.write_text(Paint(cli.color.on_stdout()), out),
        _ => report.write_text(Paint(false), out),
    }
}

/// Draws the comparison.
fn write_picture(
    report: &Report<'_>,
    args: &DiffArgs,
    outputs: &Outputs,
    health: &[String],
    mut out: &mut dyn Write,
) -> std::io::Result<()> {
    let picture = DiffPicture {
        view: args.view.unwrap_or_default(),
        colour_by: args.color_by.unwrap_or_default(),
    };
    let config = outputs.svg_config(Some("Differential Flame Graph"), health);
    write_diff_svg(report.tree, &picture, &config, &mut out)
}

/// A number of things with its noun.
fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", group_thousands(number), if number == 1 { one } else { many })
}
