//! `flame uboot calls` and `flame uboot timing`: calls and their time summed up, or as they came.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use flame_profile::{CallTree, SiblingOrder};
use flame_uboot::{
    Followed, Functions, Making, Measure, Reading, Rules, complaints_of_file, complaints_of_map,
    follow, footer, no_calls, no_weight, summary, too_deep, wrong_trace,
};

use super::input::{self, shown};
use super::{compat, complain};
use crate::cli::{Cli, OutputArgs, UbootGraphArgs};
use crate::message::{self, Failure, first_of, warn};
use crate::output::{Defaults, Format, Outputs, Shown};
use crate::render::say;

/// Runs the command.
pub(super) fn run(args: &UbootGraphArgs, measure: Measure, cli: &Cli) -> Result<ExitCode, Failure> {
    let config = args.config.as_deref();
    input::check_stdin(&[Some(&args.input.trace), Some(&args.map), config])?;
    let outputs = prepare(args, measure, cli)?;
    if args.compat {
        return compat::graph(args, measure, &outputs, cli);
    }
    let rules = rules(args, cli)?;
    let (mut trace, broken_end) = input::trace(&args.input.trace)?;
    let name = shown(&args.input.trace);
    let wrong_trace = |error| wrong_trace(&name, &error);
    let chunk = trace.calls(args.input.chunk).map_err(wrong_trace)?;
    let map = input::map(&args.map, trace.layout().site_len())?;
    let mut functions = Functions::new(Some(&map), rules.as_ref());
    let making = if args.picture.flamechart { Making::Chart } else { Making::Graph };
    let followed = follow(&mut trace, chunk, &mut functions, making).map_err(wrong_trace)?;
    if followed.facts.entries == 0 {
        return Err(no_calls(&name, &followed.facts));
    }
    let mut complaints = complaints_of_file(&trace, chunk, broken_end);
    complaints.extend(complaints_of_map(&map, &shown(&args.map), &functions, &followed)?);
    complain(&complaints, cli);
    let footer = footer(&name, &shown(&args.map), &followed, complaints);
    let made = Made { measure, functions: &functions, rules: rules.as_ref() };
    write(followed, &made, &footer, &outputs, cli)
}

fn prepare(args: &UbootGraphArgs, measure: Measure, cli: &Cli) -> Result<Outputs, Failure> {
    if args.picture.flamechart && measure == Measure::Calls {
        return Err(Failure::usage("cannot draw a flame chart of calls")
            .why("x is time in a flame chart")
            .or_try("flame uboot timing --flamechart"));
    }
    let on_stdout = match (args.compat, io::stdout().is_terminal()) {
        (true, _) => Format::Folded,
        (false, true) => Format::Terminal,
        (false, false) => Format::Svg,
    };
    let defaults = Defaults::of(on_stdout, args.picture.open);
    let defaults = Defaults { merges_pools: false, ..defaults };
    let output =
        OutputArgs { output: args.output.clone(), format: args.format, ..OutputArgs::default() };
    Outputs::prepare(&output, &args.picture, cli, defaults)
}

/// The rules that apply. Those that do not are read all the same, so that mistakes are found.
fn rules(args: &UbootGraphArgs, cli: &Cli) -> Result<Option<Rules>, Failure> {
    let rules = input::rules(args.config.as_deref(), Reading::Whole)?;
    if rules.is_some() && !args.apply_filter && !cli.quiet {
        warn(
            "--config changes nothing here: rules are for ftrace; --apply-filter applies them",
            cli.color,
        );
    }
    Ok(rules.filter(|_| args.apply_filter))
}

/// What outputs are made with.
struct Made<'a> {
    measure: Measure,
    functions: &'a Functions<'a>,
    rules: Option<&'a Rules>,
}

fn write(
    mut followed: Followed,
    made: &Made<'_>,
    footer: &[String],
    outputs: &Outputs,
    cli: &Cli,
) -> Result<ExitCode, Failure> {
    let chart = followed.chart.take().map(flame_uboot::Chart::finish);
    let is_chart = chart.is_some();
    let order = outputs.default_tree_options().order;
    let order = if is_chart { SiblingOrder::First } else { order };
    let tree = followed.graph.tree(made.measure, made.functions, order);
    if tree.total().0 == 0 {
        return Err(no_weight(made.rules.is_some()));
    }
    if let Some(failure) = outputs.missing(&tree) {
        return Err(failure);
    }
    let tree = outputs.shape(tree)?;
    let names_paths =
        |format| matches!(format, Format::Folded | Format::Text | Format::Markdown | Format::Pprof);
    if let Some(failure) = outputs.formats().any(names_paths).then(|| too_deep(&tree)).flatten() {
        return Err(failure);
    }
    let chart: Option<CallTree> = chart.map(|chart| outputs.shape(chart)).transpose()?;
    if !cli.quiet {
        outputs.idle_options_of_any(&tree).iter().for_each(|idle| warn(idle, cli.color));
    }
    let profile = outputs
        .formats()
        .any(|format| format == Format::Pprof)
        .then(|| followed.graph.profile(made.measure, made.functions));
    let title = match (made.measure, is_chart) {
        (_, true) => "U-Boot: flame chart",
        (Measure::Calls, _) => "U-Boot: calls",
        (Measure::Time, _) => "U-Boot: time",
    };
    let (written, mut failures) = outputs.write_with(&|format, out| {
        let is_picture = matches!(format, Format::Svg | Format::Terminal);
        let tree = chart.as_ref().filter(|_| is_picture).unwrap_or(&tree);
        let profile = profile.as_ref().filter(|_| format == Format::Pprof);
        outputs.write_one(&Shown { tree, profile, title: Some(title), footer }, format, out)
    });
    failures.extend(outputs.keep_colours(&tree));
    if !cli.quiet {
        message::say_line(&summary(&followed.facts));
        say(&written, cli);
    }
    let failed = first_of(failures, cli.color);
    failed.map(|()| ExitCode::SUCCESS)
}
