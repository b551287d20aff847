//! `flame diff`: profiles compared.

mod inputs;
mod options;
mod sides;

use std::io::Write;
use std::process::ExitCode;

use flame_diff::{DEFAULT_ALPHA, DiffConfig, DiffTree, Gate, Names, Run, Scaling};
use flame_render::{
    Comparison, ComparisonConfig, DiffPicture, Page, ProfileQuality, Quality, are_identical,
    are_strangers, diff_failure, doubts, gate_doubt, gate_failure, missing_function,
    write_diff_svg,
};

use crate::cli::{Cli, DiffArgs};
use crate::message::{Failure, first_of, say_line, warn};
use crate::output::{Format, Outputs, write_folded};
use crate::render::say;
use crate::terminal::{Paint, columns_of_stdout};
use inputs::{Input, Inputs};
use sides::Sides;

/// Runs the command.
pub(crate) fn run(args: &DiffArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    let sides = Sides::of(args)?;
    let outputs = options::prepare(args, cli)?;
    let mut inputs = Inputs::read(&sides, args, &outputs)?;
    let matched = inputs.match_roots();
    let left_out = std::mem::take(&mut inputs.left_out);
    let names = names_of(args);
    let gates: Vec<Gate> = args.fail_if.iter().map(|gate| gate.with_names(names)).collect();
    let mut quality = quality_of(&inputs);
    let warnings = doubts_of(&inputs, args)?;
    let tree = compare(inputs, args, &outputs)?;
    let warnings = warnings.into_iter().chain(are_identical(&tree));
    let warnings = warnings.chain(are_strangers(&tree));
    let warnings = warnings.chain(gates.iter().filter_map(|gate| gate_doubt(gate, &tree)));
    let unknown: Vec<Failure> =
        gates.iter().filter_map(|gate| missing_function(gate, &tree)).collect();
    let (allowed, unknown) =
        if args.allow_missing { (unknown, Vec::new()) } else { (Vec::new(), unknown) };
    let allowed = allowed.iter().map(|failure| failure.what().to_owned());
    let said = left_out.into_iter().chain(warnings).chain(allowed);
    quality.warnings = said.chain(matched).collect();
    if !cli.quiet {
        let skipped = quality.skipped().collect::<Vec<String>>();
        skipped.iter().chain(&quality.warnings).for_each(|warning| warn(warning, cli.color));
    }
    let config = ComparisonConfig {
        all: args.all,
        limit: args.limit,
        title: args.picture.title.clone(),
        count_name: args.picture.countname.clone(),
        no_metadata: args.picture.no_metadata,
    };
    let report = Comparison::new(&tree, &quality, &config);
    let (written, failures) = outputs.write_with(&|format, out| match format {
        Format::Svg => write_picture(&report, args, &outputs, out),
        _ => write(&report, cli, &outputs, format, out),
    });
    say(&written, cli);
    if !cli.quiet && !written.is_empty() {
        say_line(&report.verdict());
    }
    // An output that could not be written counts more than what it would have said, and a gate
    // that guards nothing more than one that held or broke.
    let exceeded = gates.iter().filter_map(|gate| gate_failure(gate, &tree));
    let failed = first_of(failures.into_iter().chain(unknown).chain(exceeded), cli.color);
    std::mem::forget(tree);
    failed.map(|()| ExitCode::SUCCESS)
}

/// How far the files can be trusted; nothing doubtful in the comparison yet.
fn quality_of(inputs: &Inputs) -> Quality {
    let file = |input: &Input| ProfileQuality {
        name: input.run.name.clone(),
        meta: input.meta.clone(),
        health: input.health.clone(),
    };
    let files = |inputs: &[Input]| inputs.iter().map(file).collect();
    let (before, after) = (files(&inputs.before), files(&inputs.after));
    Quality { before, after, warnings: Vec::new() }
}

/// What makes the comparison doubtful.
fn doubts_of(inputs: &Inputs, args: &DiffArgs) -> Result<Vec<String>, Failure> {
    let [before, after] = [&inputs.before, &inputs.after]
        .map(|side| side.iter().map(|input| (&input.run, &input.meta)).collect::<Vec<_>>());
    let is_scaled = !args.scaling.no_normalize && !args.scaling.by_time;
    doubts([&before, &after], args.values.is_none(), is_scaled)
}

/// Which differences between names the arguments leave out.
fn names_of(args: &DiffArgs) -> Names {
    match (args.match_names, args.strip_hex) {
        (true, _) => Names::AcrossBuilds,
        (_, true) => Names::WithoutHex,
        _ => Names::Exact,
    }
}

fn compare(inputs: Inputs, args: &DiffArgs, outputs: &Outputs) -> Result<DiffTree, Failure> {
    let scaling = &args.scaling;
    let scaling = match (&scaling.per, scaling.no_normalize, scaling.by_time) {
        (Some(function), ..) => Scaling::Function(names_of(args).common(function).into_owned()),
        (_, true, _) => Scaling::None,
        (_, _, true) => Scaling::Time,
        _ => Scaling::Total,
    };
    // Columns say nothing of what is real, and nothing else is asked for. Of a file the result is said.
    let tested = !args.fail_if.is_empty() || !outputs.are_printed_as(Format::Folded);
    let config = DiffConfig { scaling, alpha: args.alpha.unwrap_or(DEFAULT_ALPHA), tested };
    let runs = |side: Vec<Input>| -> Vec<Run> { side.into_iter().map(|input| input.run).collect() };
    let (before, after) = (runs(inputs.before), runs(inputs.after));
    let tree = DiffTree::new(&before, &after, &config).map_err(|error| diff_failure(&error));
    // Taking large trees apart takes time, and the process is about to end.
    std::mem::forget((before, after));
    tree
}

fn write(
    report: &Comparison<'_>,
    cli: &Cli,
    outputs: &Outputs,
    format: Format,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        Format::Folded => write_folded(&report.tree.comparable(), outputs.annotations(), out),
        Format::Json => report.write_json(out),
        Format::Markdown => report.write_markdown(out),
        Format::Terminal => {
            let columns = Some(columns_of_stdout() as usize);
            Page { paint: Paint(cli.color.on_stdout()), columns }.write(report, out)
        }
        _ => Page { paint: Paint(false), columns: None }.write(report, out),
    }
}

/// Draws the comparison.
fn write_picture(
    report: &Comparison<'_>,
    args: &DiffArgs,
    outputs: &Outputs,
    mut out: &mut dyn Write,
) -> std::io::Result<()> {
    let picture = DiffPicture {
        view: args.view.unwrap_or_default(),
        colour_by: args.color_by.unwrap_or_default(),
    };
    let config = outputs.svg_config(Some("Differential Flame Graph"), &report.quality.lines());
    write_diff_svg(report.tree, &picture, &config, &mut out)
}
