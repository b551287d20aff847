//! `flame uboot calls` and `flame uboot timing`: calls and their time summed up, or as they came.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use flame_profile::{CallTree, SiblingOrder};
use flame_render::group_thousands;
use flame_uboot::{Followed, Functions, Making, Measure, Reading, Rules, follow};

use super::input::{self, shown};
use super::{compat, words};
use crate::cli::{Cli, OutputArgs, UbootGraphArgs};
use crate::message::{self, Failure, first_of, warn};
use crate::output::{Defaults, Format, Outputs, Shown};
use crate::render::say;

/// More bytes of paths than a disk should be filled with.
const MOST_PATHS: u64 = 4 << 30;

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
    let wrong_trace = |error| input::wrong_trace(&args.input.trace, &error);
    let chunk = trace.calls(args.input.chunk).map_err(wrong_trace)?;
    let map = input::map(&args.map, trace.layout().site_len())?;
    let mut functions = Functions::new(Some(&map), rules.as_ref());
    let making = if args.picture.flamechart { Making::Chart } else { Making::Graph };
    let followed = follow(&mut trace, chunk, &mut functions, making).map_err(wrong_trace)?;
    if followed.facts.entries == 0 {
        return Err(nothing(args, &followed));
    }
    let mut complaints = words::of_file(&trace, chunk, broken_end);
    complaints.extend(words::of_map(&map, &args.map, &functions, &followed)?);
    if !cli.quiet {
        words::complain(&complaints, cli.color);
    }
    let footer = footer(args, &followed, complaints);
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
    let opens = args.picture.open;
    let path = if opens { "flame.svg" } else { "-" };
    let defaults = Defaults {
        path,
        keeps_foreign: opens,
        merges_pools: false,
        on_stdout: if opens { Format::Svg } else { on_stdout },
        is_recording: false,
    };
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

fn nothing(args: &UbootGraphArgs, followed: &Followed) -> Failure {
    let failure = Failure::new(format!("no calls in {}", shown(&args.input.trace)));
    match (followed.facts.exits, followed.facts.others) {
        (0, 0) => {
            failure.why("its calls chunk has no records: nothing was traced, or it was wiped")
        }
        (0, _) => failure.why("its records are neither entries nor exits"),
        _ => failure.why("no function was entered; there are only exits"),
    }
    .or_try("flame uboot info, to see what is in it")
}

/// What is known of the trace, for the foot of pictures.
fn footer(args: &UbootGraphArgs, followed: &Followed, complaints: Vec<String>) -> Vec<String> {
    let (trace, map) = (shown(&args.input.trace), shown(&args.map));
    let mut lines = vec![
        format!(concat!("from {}, {}, flame ", env!("CARGO_PKG_VERSION")), trace, map),
        words::summary(&followed.facts),
    ];
    let outside = followed.graph.outside();
    if outside > 0 {
        lines.push(format!("{} were in no traced function", words::duration(outside)));
    }
    if followed.graph.excluded_calls() > 0 {
        let calls = words::count(followed.graph.excluded_calls(), "call", "calls");
        lines.push(format!("{calls} of excluded functions left out"));
    }
    lines.extend(complaints);
    lines
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
        return Err(no_weight(made));
    }
    if let Some(failure) = outputs.missing(&tree) {
        return Err(failure);
    }
    let tree = outputs.shape(tree)?;
    if let Some(failure) = too_deep(&tree, outputs) {
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
        message::say_line(&words::summary(&followed.facts));
        say(&written, cli);
    }
    let failed = first_of(failures, cli.color);
    failed.map(|()| ExitCode::SUCCESS)
}

/// There are calls, and all of them are excluded or took no time.
fn no_weight(made: &Made<'_>) -> Failure {
    match (made.rules, made.measure) {
        (Some(_), _) => Failure::new("nothing is left to show")
            .why("the rules exclude all functions that were called")
            .or_try("an include-func rule after them, since the last match decides"),
        (None, _) => Failure::new("nothing to show: all calls took less than a microsecond")
            .or_try("flame uboot calls"),
    }
}

/// Formats that name the callers of each function, for which a trace of nothing but entries would
/// need the square of its length.
fn too_deep(tree: &CallTree, outputs: &Outputs) -> Option<Failure> {
    let names_paths =
        |format| matches!(format, Format::Folded | Format::Text | Format::Markdown | Format::Pprof);
    let bytes = path_bytes(tree);
    (outputs.formats().any(names_paths) && bytes > MOST_PATHS).then(|| {
        let depth = group_thousands(u64::from(tree.max_depth()));
        Failure::new(format!("the calls are {depth} levels deep: too many to name all callers"))
            .why(format!("the names of all paths take {} GB", bytes >> 30))
            .or_try("-o FILE.svg, FILE.json or FILE.csv, or flame uboot info to see what is wrong")
    })
}

/// The bytes of all paths as folded text has them.
fn path_bytes(tree: &CallTree) -> u64 {
    let (mut bytes, mut above) = (0, Vec::new());
    for node in tree.nodes() {
        above.truncate(node.depth as usize);
        let len = above.last().unwrap_or(&0) + tree.label(node).name.len() as u64 + 1;
        bytes += len;
        above.push(len);
    }
    bytes
}
