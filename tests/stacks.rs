//! What stands on a stack: order, roots, names, inlined, kernel and generated code.

use std::fs;

use crate::support::{
    Build, Folded, Scratch, assert_count, assert_share, finish, flame, live, live_as_root, program,
    program_built, record, unread_stacks,
};

/// Records a program at 999 Hz.
#[track_caller]
fn at_999(arguments: &[&str]) -> Folded {
    record(&[&["-F", "999"], arguments].concat())
}

/// The second to last frames of the C library above `main` differ from one library to the next;
/// the first and what `main` calls do not.
#[test]
fn dynamic_program_without_frame_pointers_is_rooted_at_start() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program("shares.c"), "0.5"]);
    let main = folded.with(&["main", "work"]);
    assert_share(main, folded.total(), 1.0, 0.03);
    for (frames, _) in folded.stacks() {
        if let Some(at) = frames.iter().position(|frame| frame == "main") {
            assert_eq!(frames[..2], ["shares", "_start"], "{frames:?}");
            assert!((3..=5).contains(&at), "`main` is frame {at} of {frames:?}");
        }
    }
    assert_eq!(folded.with(&["[truncated stack]"]), 0);
}

#[test]
fn static_program_is_rooted_at_start() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program_built("shares.c", Build::Static), "0.5"]);
    let below_start = folded.with(&["shares", "_start"]);
    assert_share(below_start, folded.total(), 1.0, 0.02);
    assert_share(folded.with(&["main", "work"]), folded.total(), 1.0, 0.02);
}

#[test]
fn threads_of_a_static_program_are_rooted_at_clone() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program_built("threads.c", Build::Static), "0.2"]);
    for name in ["early", "late"] {
        let of_name = folded.of(name);
        let rooted = of_name.stacks().filter(|(frames, _)| frames[1].ends_with("clone3"));
        let rooted: u64 = rooted.map(|(_, weight)| weight).sum();
        assert_share(rooted, of_name.total(), 1.0, 0.02);
    }
}

/// How often a frame stands on a stack, by weight; stacks without `bottom` are left out.
fn depths(folded: &Folded, names: &[&str]) -> Vec<(usize, u64)> {
    let mut depths: Vec<(usize, u64)> = Vec::new();
    for (frames, weight) in folded.stacks().filter(|(f, _)| f.iter().any(|f| f == "bottom")) {
        let depth = frames.iter().filter(|frame| names.contains(&frame.as_str())).count();
        match depths.iter_mut().find(|(known, _)| *known == depth) {
            Some((_, sum)) => *sum += weight,
            None => depths.push((depth, weight)),
        }
    }
    depths
}

#[test]
fn recursion_shows_every_level() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program("recursion.c"), "0.3", "200"]);
    let levels = depths(&folded, &["descend"]);
    assert_eq!(levels.len(), 1, "depths and weights: {levels:?}");
    assert_eq!(levels[0].0, 200);
    assert_count(levels[0].1, 0.3 * 999.0, 0.15);
}

#[test]
fn mutual_recursion_alternates() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program("recursion.c"), "0.3", "60", "mutual"]);
    assert_eq!(depths(&folded, &["even"])[0].0, 30);
    assert_eq!(depths(&folded, &["odd"])[0].0, 30);
    assert_eq!(folded.with(&["even", "even"]) + folded.with(&["odd", "odd"]), 0);
    let ends = folded.with(&["main", "even", "odd", "even"]);
    assert_share(ends, folded.total(), 1.0, 0.02);
}

#[test]
fn frame_pointer_chain_serves_where_programs_keep_it() {
    if !live() {
        return;
    }
    let program = program_built("recursion.c", Build::FramePointers);
    let folded = at_999(&["--call-graph", "fp", "--", &program, "0.3", "50"]);
    let levels = depths(&folded, &["descend"]);
    // The C library keeps no frame pointers: samples while the clock is read lose frames.
    let whole = levels.iter().find(|(depth, _)| *depth == 50).map_or(0, |(_, weight)| *weight);
    assert_share(whole, folded.total(), 1.0, 0.12);
}

#[test]
fn frame_pointers_are_the_fallback_where_unwind_information_is_missing() {
    if !live() {
        return;
    }
    let program = program_built("recursion.c", Build::FramePointers);
    let folded = at_999(&["--", &program, "0.3", "50"]);
    let levels = depths(&folded, &["descend"]);
    let whole = levels.iter().find(|(depth, _)| *depth == 50).map_or(0, |(_, weight)| *weight);
    assert_share(whole, folded.total(), 1.0, 0.05);
}

#[test]
fn call_graph_none_names_the_innermost_function_alone() {
    if !live() {
        return;
    }
    let folded = at_999(&["--call-graph", "none", "-u", "--", &program("shares.c"), "0.3"]);
    assert_share(folded.with(&["shares", "alpha"]), folded.total(), 0.5, 0.05);
    // What is inlined into that function stands above it.
    let is_one = |frames: &[String]| frames.iter().skip(2).all(|frame| frame.ends_with("_[i]"));
    assert!(folded.stacks().all(|(frames, _)| is_one(frames)), "{folded:?}");
}

#[test]
fn inlined_functions_of_c_are_named_and_marked() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program_built("inlining.c", Build::Debug), "0.5"]);
    let chain = folded.with(&["main", "outer", "middle_[i]", "inner_[i]"]);
    assert_share(chain, folded.total(), 1.0, 0.03);
}

#[test]
fn inlined_and_generic_functions_of_rust_are_named_and_marked() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program("inlining.rs"), "0.5"]);
    let inlined = ["inlining::middle_[i]", "inlining::inner_[i]"];
    let plain = folded.with(&["inlining::main", "inlining::outer", inlined[0], inlined[1]]);
    let method = "<inlining::Wrapper<T> as inlining::Crunch>::crunch";
    let instance = "<inlining::Wrapper<u32> as inlining::Crunch>::crunch";
    let generic = folded.with(&[method, inlined[0], inlined[1]])
        + folded.with(&[instance, inlined[0], inlined[1]]);
    assert_share(plain, folded.total(), 0.5, 0.03);
    assert_share(generic, folded.total(), 0.5, 0.03);
}

#[test]
fn no_annotate_leaves_the_marks_out() {
    if !live() {
        return;
    }
    let program = program_built("inlining.c", Build::Debug);
    let folded = at_999(&["--no-annotate", "--", &program, "0.3"]);
    let chain = folded.with(&["main", "outer", "middle", "inner"]);
    assert_share(chain, folded.total(), 1.0, 0.04);
    assert_eq!(folded.with_any(|frame| frame.contains("_[")), 0);
}

#[test]
fn kernel_frames_stand_below_the_call_that_entered_it() {
    if !live_as_root() {
        return;
    }
    let folded = at_999(&["--", &program("syscalls.c"), "0.5"]);
    let kernel = folded.with_any(|frame| frame.ends_with("_[k]"));
    assert_share(kernel, folded.total(), 1.0, 0.06);
    let below_caller: u64 = folded
        .stacks()
        .filter(|(frames, _)| {
            let first_kernel = frames.iter().position(|frame| frame.ends_with("_[k]"));
            let caller = frames.iter().position(|frame| frame == "fill_from_kernel");
            // No user frame stands below a kernel frame.
            let rest = first_kernel.map_or(&[][..], |at| &frames[at..]);
            assert!(rest.iter().all(|frame| frame.ends_with("_[k]")), "{frames:?}");
            matches!((caller, first_kernel), (Some(caller), Some(kernel)) if caller < kernel)
        })
        .map(|(_, weight)| weight)
        .sum();
    assert_share(below_caller, folded.total(), 1.0, 0.06);
}

#[test]
fn generated_code_is_named_from_its_perf_map() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program("jit.c"), "0.5"]);
    for entry in fs::read_dir("/tmp").unwrap().filter_map(Result::ok) {
        let name = entry.file_name().into_string().unwrap_or_default();
        // Others of that name may be anything, such as the FIFOs of hostile targets.
        let is_map = name.starts_with("perf-") && entry.file_type().is_ok_and(|t| t.is_file());
        let is_its = |text: String| text.contains(" jit_outer\n");
        if is_map && fs::read_to_string(entry.path()).is_ok_and(is_its) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let chain = folded.with(&["main", "run_jitted", "jit_outer_[j]", "jit_inner_[j]"]);
    assert_share(chain, folded.total(), 1.0, 0.03);
}

#[test]
fn object_that_was_loaded_midway_and_unloaded_again_is_named() {
    if !live() {
        return;
    }
    let plugin = program_built("plugin.c", Build::Shared);
    let folded = at_999(&["--", &program("dlopen.c"), &plugin, "0.6"]);
    let before = folded.with(&["main", "before_load"]);
    let after = folded.with(&["main", "run_plugin", "plugin_work", "plugin_inner"]);
    assert_share(before, folded.total(), 0.5, 0.03);
    assert_share(after, folded.total(), 0.5, 0.03);
}

#[test]
fn an_executable_in_memory_is_named_like_a_file() {
    if !live() {
        return;
    }
    let shares = program("shares.c");
    let folded = at_999(&["--", &program("memfd.c"), &shares, "0.5"]);
    assert_share(folded.with(&["main", "work"]), folded.total(), 1.0, 0.04);
}

#[test]
fn names_of_cpp_are_demangled() {
    if !live() {
        return;
    }
    let folded = at_999(&["--", &program("names.cpp"), "1"]);
    let quarter = |name: &str| {
        let weight = folded.with_any(|frame| frame.starts_with(name));
        assert_share(weight, folded.total(), 0.25, 0.02);
    };
    quarter("(anonymous namespace)::Hidden::method(unsigned long) const");
    quarter("geometry::Vector::operator+(geometry::Vector const&) const");
    quarter("void geometry::scale<unsigned long, 3>(unsigned long)");
    let lambda = folded.with_any(|frame| frame.contains("main::{lambda(unsigned long)#1}"));
    assert_share(lambda, folded.total(), 0.25, 0.02);
    assert_eq!(folded.with_any(|frame| frame.starts_with("_Z")), 0);
}

/// How long `deep.c` spent below `first`, below `second`, in `wide` and in `shallow`, and what was
/// recorded of it.
struct Deep {
    truth: [u64; 4],
    folded: Folded,
    said: String,
}

/// Records `deep.c` with 16 KiB of stack copied at most.
#[track_caller]
fn deep(build: Build, frequency: &str, arguments: &[&str]) -> Deep {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let program = program_built("deep.c", build);
    let mut command = flame();
    command.args(["record", "-F", frequency, "--call-graph", "dwarf,16384", "-o", &path, "--"]);
    let ended = finish(command.arg(program).args(arguments)).success();
    let truth: Vec<u64> =
        ended.stdout.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    Deep { truth: truth.try_into().unwrap(), folded, said: ended.stderr }
}

/// Whether a stack is one that the program can have: rooted, and the frames in `main`'s order.
fn is_possible(frames: &[String]) -> bool {
    let count = |name: &str| frames.iter().filter(|frame| *frame == name).count();
    let levels = frames.iter().filter(|frame| frame.starts_with("descend")).count();
    let callers = count("first") + count("second");
    // The way down and up takes some microseconds of each round.
    let bottom = count("bottom") == 0 || levels == 300;
    // A caller by itself has not called yet, or has been returned to.
    let deep = callers <= 1 && (levels == 0 || callers == 1);
    let elsewhere = callers == 0 || count("wide") + count("shallow") == 0;
    bottom && deep && elsewhere
}

/// Asserts that stacks are right, rooted but for those that a machine which stands still now and then
/// lets the readers be too late for, and have the program's shares.
#[track_caller]
fn check_deep(build: Build, frequency: &str, arguments: &[&str]) {
    let Deep { truth, folded, said } = deep(build, frequency, arguments);
    let total = folded.total();
    let truncated = folded.with(&["[truncated stack]"]);
    let unread = unread_stacks(&said);
    let readable = total.saturating_sub(unread);
    assert!(truncated.saturating_sub(unread) * 100 <= total, "{truncated} truncated:\n{said}");
    assert!(readable * 2 > total, "{said}");
    for (frames, _) in folded.stacks().filter(|(frames, _)| frames[1] != "[truncated stack]") {
        assert!(is_possible(frames), "{frames:?}");
    }
    let all: u64 = truth.iter().sum();
    for (name, spent) in ["first", "second", "wide", "shallow"].into_iter().zip(truth) {
        let share = spent as f64 / all as f64;
        assert_share(folded.with(&[name]), total, share, 0.01 + truncated as f64 / total as f64);
    }
}

#[test]
fn deep_and_wide_stacks_are_rooted_with_a_small_copy() {
    if !live_as_root() {
        return;
    }
    // 300 levels take 31 KiB.
    check_deep(Build::Plain, "999", &["4", "1", "1", "100"]);
}

#[test]
fn stacks_beyond_the_largest_copy_are_rooted_in_all_threads() {
    if !live_as_root() {
        return;
    }
    // 300 levels take 62 KiB, and `wide` 80.
    check_deep(Build::Plain, "999", &["1", "3", "1", "200"]);
}

/// The recursion is called by two functions whose frames have the same size, so that only what lies
/// beyond the copy tells by which.
#[test]
fn two_callers_beyond_the_copy_are_told_apart() {
    if !live_as_root() {
        return;
    }
    check_deep(Build::Plain, "999", &["4", "1", "2", "100"]);
}

#[test]
fn depth_that_is_left_out_stands_under_a_mark_of_its_own_and_is_counted() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let program = program("recursion.c");
    let mut command = flame();
    command.args(["record", "-F", "999", "--max-depth", "50", "-o", &path, "--"]);
    let ended = finish(command.args([&*program, "0.3", "200"])).success();
    assert!(ended.stderr.contains("frame limit reached"), "{}", ended.stderr);
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let marked = folded.with(&["recursion", "[frames beyond --max-depth]", "descend", "descend"]);
    assert_share(marked, folded.total(), 1.0, 0.05);
    for (frames, _) in folded.stacks().filter(|(frames, _)| frames[1].starts_with("[frames")) {
        let user = frames.iter().filter(|frame| !frame.ends_with("_[k]")).count();
        // The thread's name, the mark, and fifty frames.
        assert_eq!(user, 52, "{frames:?}");
    }
}

#[test]
fn recursion_collapses_on_demand() {
    if !live() {
        return;
    }
    let program = program("recursion.c");
    let direct = at_999(&["--collapse-recursion", "--", &program, "0.3", "200"]);
    let once = direct.with(&["main", "descend", "bottom"]);
    assert_share(once, direct.total(), 1.0, 0.03);
    let mutual = at_999(&["--collapse-recursion", "--", &program, "0.3", "60", "mutual"]);
    assert_share(mutual.with(&["main", "even", "odd", "bottom"]), mutual.total(), 1.0, 0.03);
    assert_eq!(mutual.with(&["odd", "even"]), 0);
}
