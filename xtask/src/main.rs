//! Maintainer tasks: `cargo xtask ci`, `test`, `fuzz`, `vm`, `bench` and `docs`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for terminals")]

use std::process::ExitCode;

mod bench;
mod ci;
mod docs;
mod fuzz;
mod vm;

const USAGE: &str = "\
usage:
  cargo xtask ci              format, lints, docs, build, tests, fuzz, machines: what must pass
  cargo xtask test            the tests that need neither perf_event nor a browser
      --repeat N [FILTER]
                     all tests, or those whose names contain FILTER, N times: which failed how often
  cargo xtask fuzz [--seconds N] [TARGET]
                              every parser, or one, under libFuzzer for N (5) seconds each
  cargo xtask vm              flame on machines in QEMU: other kernels and processors
      --machine NAME  one machine; --case PART  some cases
      --short        fewer cases on three machines
      --flame FILE   flame for machines of its kind, instead of building it
      --write        the table goes to docs/machines.md
  cargo xtask docs [PART]     the pictures of docs/, recorded and drawn anew
  cargo xtask bench record    the bars of `flame record`, beside perf and samply
      --seconds N    seconds of each overhead run (10)
      --rounds N     runs, and pairs of windows, of each kind (7)
      --quick        shorter runs: memory over 10 and 50 seconds instead of 1 and 5 minutes
      --only NAME    compile, overhead, slowdown or memory alone
  cargo xtask bench accuracy  programs whose shares are known, beside perf and samply
      --seconds N    CPU seconds of each program (5)
      --only NAME    short-lived, rhythm, stacks, occurrences, thread, reaped, unprivileged or
                     unreadable alone
  cargo xtask bench matrix    which stacks reach their root: programs of all kinds, users, modes
      --seconds N    seconds of each recording (2)
      --only KIND    kinds of that name alone
      --write        the tables go to docs/rooted.md
  cargo xtask bench render    folded text to SVG, beside inferno-flamegraph and flamegraph.pl
  cargo xtask bench fold      what perf and others write, beside inferno, stackcollapse-perf.pl and pprof
  cargo xtask bench modes     what each --mode costs a program that does nothing else, beside perf
  cargo xtask bench scripts   Python, Ruby and PHP that know who calls whom, beside py-spy, rbspy and phpspy
      --seconds N    seconds that count of each recording (4)
      --rounds N     recordings of each kind (5)
      --only NAME    python, ruby or php alone
  cargo xtask bench diff      two folded files to SVG, beside inferno-diff-folded and difffolded.pl
  cargo xtask bench stacks N  the input of that, with N distinct stacks
  cargo xtask bench view      the SVG in a browser, beside flamegraph.pl's (FLAMEGRAPH_DIR)
      --rounds N     browsers of each kind (5)
      --frames N     one size alone: 10000, 50000, 200000 or 1000000
  cargo xtask bench symbols   names of 10,000 addresses, beside binutils, LLVM and addr2line
      --rounds N     runs of each tool (5)
      --program FILE look up addresses of FILE instead of building xtask/subject (10 minutes)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["ci"] => ci::run(),
        ["test"] => ci::test(),
        ["test", "--repeat", rounds] => ci::repeat::run(rounds, None),
        ["test", "--repeat", rounds, filter] => ci::repeat::run(rounds, Some(filter)),
        ["docs"] => docs::run(None),
        ["docs", part] => docs::run(Some(part)),
        ["fuzz", options @ ..] => fuzz::run(options),
        ["vm", options @ ..] => vm::run(options),
        ["bench", "view", options @ ..] => bench::view(options),
        ["bench", "record", options @ ..] => bench::record(options),
        ["bench", "accuracy", options @ ..] => bench::accuracy(options),
        ["bench", "matrix", options @ ..] => bench::matrix::run(options),
        ["bench", "render"] => bench::render::run(),
        ["bench", "modes"] => bench::modes::run(),
        ["bench", "fold"] => bench::fold::run(),
        ["bench", "scripts", options @ ..] => bench::scripts::run(options),
        ["bench", "diff"] => bench::diff::run(),
        ["bench", "stacks", count] => bench::stacks::print(count),
        ["bench", "symbols", options @ ..] => bench::symbols(options),
        ["help" | "-h" | "--help"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
