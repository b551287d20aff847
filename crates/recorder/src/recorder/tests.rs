//! The way from events to a profile, with a scripted source in place of the kernel.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use flame_events::{Event, FileId, MappingEvent, SampleEvent, StackBytes};
use flame_profile::{
    Annotations, ByteLen, CallTree, FileOffset, Missing, Pid, ProcessAddress, RootFrame, StackEnd,
    Tid, TreeOptions, ValueType, write_folded,
};

use flame_image::{Files, ImageFile};

use super::*;
use crate::{Absent, Identity, Namespace, TargetFiles};

/// Registers 7 (sp) and 8 (ip) of x86-64 in perf's numbering.
const SP_AND_IP: u64 = 0x180;

/// A function of no kernel: the page below the last one.
const KERNEL_ADDRESS: u64 = 0xffff_ffff_ffff_e001;

/// Events to be handed over once, in this order.
struct Script(Vec<Event<'static>>);

impl EventSource for Script {
    type Error = Infallible;

    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), Infallible> {
        self.0.drain(..).for_each(sink);
        Ok(())
    }
}

fn event(kind: EventKind<'static>) -> Event<'static> {
    Event { time: Nanos(1), kind }
}

fn named(pid: u32, name: &str) -> Event<'static> {
    let name = name.as_bytes().to_vec();
    event(EventKind::Comm { pid: Pid(pid), tid: Tid(pid), name, exec: true })
}

fn mapped(pid: u32, start: u64, path: &'static [u8]) -> Event<'static> {
    event(EventKind::Mapping(MappingEvent {
        pid: Pid(pid),
        start: ProcessAddress(start),
        end: ProcessAddress(start + 0x1000),
        offset: FileOffset(0),
        file: FileId::None,
        path: path.into(),
    }))
}

fn sample(pid: u32, kernel: &[u64], user: &[u64]) -> SampleEvent<'static> {
    let addresses = |list: &[u64]| list.iter().copied().map(ProcessAddress).collect();
    SampleEvent {
        event: 0,
        pid: Pid(pid),
        tid: Tid(pid),
        cpu: None,
        period: 1_000,
        tracepoint: None,
        interrupt: None,
        ip: ProcessAddress(kernel.first().or(user.first()).copied().unwrap_or(0)),
        kernel_chain: addresses(kernel),
        user_chain: addresses(user),
        user_registers: None,
        user_stack: None,
    }
}

/// A recorder of these events, of samples with the registers of `mask` or call chains.
fn recorder(mask: u64, events: Vec<Event<'static>>) -> Recorder<Script> {
    recorder_with(mask, events, options())
}

fn recorder_with(mask: u64, events: Vec<Event<'static>>, options: Options) -> Recorder<Script> {
    let stream = Stream {
        value: ValueType::new("cpu", "nanoseconds"),
        others: Vec::new(),
        is_clock: true,
        has_user: true,
        user_registers: mask,
        stack_copy: ByteLen(0),
    };
    Recorder::of_source(Script(events), stream, options)
}

/// Of processes that are nowhere but in the script.
fn options() -> Options {
    let kernel_symbols = || Err(io::ErrorKind::NotFound.into());
    let (files, memory) = (Arc::new(Absent), Arc::new(Absent));
    Options { files, memory, kernel_symbols, ..Options::default() }
}

fn collect(mask: u64, events: Vec<Event<'static>>) -> Profile {
    let Ok(profile) = recorder(mask, events).finish();
    profile
}

fn folded(profile: &Profile, value: usize) -> String {
    let options = TreeOptions { value: Some(value), ..TreeOptions::default() };
    let tree = CallTree::from_profile(profile, &options);
    let mut out = Vec::new();
    write_folded(&tree, Annotations::Write, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn equal_stacks_add_up_in_both_values() {
    let twice = || event(EventKind::Sample(sample(1, &[], &[0x1008, 0x1100])));
    let profile = collect(0, vec![named(1, "app"), mapped(1, 0x1000, b"//anon"), twice(), twice()]);
    // Return addresses are looked up one before: inside the call.
    assert_eq!(folded(&profile, 0), "app;[anon+0xff]_[j];[anon+0x8]_[j] 2\n");
    assert_eq!(folded(&profile, 1), "app;[anon+0xff]_[j];[anon+0x8]_[j] 2000\n");
    let missing = ("[anon]".to_owned(), Missing::NoPerfMap);
    assert_eq!(profile.health.unnamed.get(&missing), Some(&2));
    assert_eq!(profile.health.stack_ends.get(&StackEnd::ChainEnd), Some(&2));
}

#[test]
fn an_address_that_nothing_is_mapped_at_is_shown_and_counted() {
    let profile =
        collect(0, vec![named(1, "app"), event(EventKind::Sample(sample(1, &[], &[0x5000])))]);
    assert_eq!(folded(&profile, 0), "app;[unmapped+0x5000] 1\n");
    let missing = ("[unmapped]".to_owned(), Missing::NotMapped);
    assert_eq!(profile.health.unnamed.get(&missing), Some(&1));
}

#[test]
fn a_task_without_user_registers_is_complete_with_its_kernel_stack() {
    let only_kernel = sample(2, &[KERNEL_ADDRESS, KERNEL_ADDRESS + 0x10], &[]);
    let profile =
        collect(SP_AND_IP, vec![named(2, "kworker"), event(EventKind::Sample(only_kernel))]);
    assert_eq!(profile.health.stack_ends.get(&StackEnd::Root), Some(&1));
    let expect = "kworker;[kernel+0x1fe010]_[k];[kernel+0x1fe001]_[k] 1\n";
    assert_eq!(folded(&profile, 0), expect);
}

#[test]
fn an_idle_task_has_the_kernels_name_for_it() {
    // What it does in interrupts is work; here an address stands for it that no kernel has.
    let idle = || event(EventKind::Sample(sample(0, &[], &[0x5000])));
    for events in [vec![idle()], vec![named(0, ""), idle()]] {
        assert_eq!(folded(&collect(0, events), 0), "swapper;[unmapped+0x5000] 1\n");
    }
}

#[test]
fn a_thread_without_a_number_is_called_exiting_and_keeps_its_process() {
    let mut late = sample(2, &[KERNEL_ADDRESS], &[]);
    late.tid = Tid(u32::MAX);
    let profile = collect(SP_AND_IP, vec![named(2, "app"), event(EventKind::Sample(late))]);
    let root = RootFrame { process: true, pid: true, tid: true, ..RootFrame::default() };
    let tree = CallTree::from_profile(&profile, &TreeOptions { root, ..TreeOptions::default() });
    let mut out = Vec::new();
    write_folded(&tree, Annotations::Write, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "app/[exiting]-2;[kernel+0x1fe001]_[k] 1\n");
}

#[test]
fn a_stack_without_unwind_information_stands_under_its_mark() {
    let mut cut = sample(1, &[], &[]);
    cut.user_registers = Some(vec![0x7ffe_0000, 0x1008]);
    cut.user_stack = Some(StackBytes { head: &[0; 16], ..StackBytes::default() });
    let profile = collect(
        SP_AND_IP,
        vec![named(1, "app"), mapped(1, 0x1000, b"//anon"), event(EventKind::Sample(cut))],
    );
    assert_eq!(folded(&profile, 0), "app;[truncated stack];[anon+0x8]_[j] 1\n");
    assert_eq!(profile.health.stack_ends.get(&StackEnd::NoUnwindInfo), Some(&1));
    assert_eq!(profile.health.no_unwind_info.get("[anon]"), Some(&1));
}

#[test]
fn a_renamed_thread_has_its_name_at_the_time_of_each_sample() {
    let hit = || event(EventKind::Sample(sample(1, &[], &[0x5000])));
    let renamed =
        event(EventKind::Comm { pid: Pid(1), tid: Tid(1), name: b"worker".to_vec(), exec: false });
    let profile = collect(0, vec![named(1, "app"), hit(), renamed, hit()]);
    assert_eq!(folded(&profile, 0), "app;[unmapped+0x5000] 1\nworker;[unmapped+0x5000] 1\n");
}

#[test]
fn throttling_is_counted() {
    let profile = collect(0, vec![event(EventKind::Throttle), event(EventKind::Unthrottle)]);
    assert_eq!(profile.health.throttled, 1);
}

#[test]
fn a_snapshot_has_what_came_so_far_and_changes_nothing() {
    let hit = || event(EventKind::Sample(sample(1, &[], &[0x5000])));
    let other = || event(EventKind::Sample(sample(1, &[KERNEL_ADDRESS], &[0x6000])));
    let mut recorder = recorder(0, vec![named(1, "app"), hit()]);
    let Ok(first) = recorder.snapshot();
    assert_eq!(folded(&first, 0), "app;[unmapped+0x5000] 1\n");
    recorder.source.0.extend([hit(), other()]);
    let Ok(second) = recorder.snapshot();
    let expect = "app;[unmapped+0x5000] 2\napp;[unmapped+0x6000];[kernel+0x1fe001]_[k] 1\n";
    assert_eq!(folded(&second, 0), expect);
    let Ok(last) = recorder.finish();
    assert_eq!(folded(&last, 0), expect);
    assert_eq!((first.health.samples, second.health.samples, last.health.samples), (1, 3, 3));
    assert_eq!(last.health.unnamed, second.health.unnamed);
    assert_eq!(last.health.stack_ends.get(&StackEnd::ChainEnd), Some(&3));
}

/// Processes of which nothing is known but the map that one of them has written.
#[derive(Debug)]
struct OneMap(File);

impl TargetFiles for OneMap {
    fn of(&self, pid: Pid) -> Files {
        Absent.of(pid)
    }

    fn open_in_root(&self, root: Option<Pid>, path: &Path, _: Pid) -> io::Result<File> {
        match (root, path.to_str()) {
            (Some(Pid(1)), Some("/tmp/perf-7.map")) => self.0.try_clone(),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn text(&self, pid: Pid, name: &str) -> io::Result<Vec<u8>> {
        Absent.text(pid, name)
    }

    fn threads(&self, pid: Pid) -> Vec<(Tid, Vec<u8>)> {
        Absent.threads(pid)
    }

    /// In its own namespace it is number 7.
    fn identity(&self, pid: Pid) -> Identity {
        let user = self.0.metadata().unwrap().uid();
        Identity { inner_pid: 7, user, ..Absent.identity(pid) }
    }

    fn namespace(&self, pid: Pid) -> Namespace {
        Absent.namespace(pid)
    }

    fn vdso(&self) -> Option<ImageFile> {
        None
    }
}

#[test]
fn code_is_named_by_the_map_where_its_process_has_it() {
    let path = std::env::temp_dir().join(format!("flame-map-{}", std::process::id()));
    let mut map = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    map.write_all(b"1000 80 hot_loop\n1080 80 caller\n").unwrap();
    map.rewind().unwrap();
    let hit = || event(EventKind::Sample(sample(1, &[], &[0x1008, 0x1100])));
    let events = vec![named(1, "app"), mapped(1, 0x1000, b"//anon"), hit()];
    let options = Options { files: Arc::new(OneMap(map)), ..options() };
    let Ok(profile) = recorder_with(0, events, options).finish();
    assert_eq!(folded(&profile, 0), "app;caller_[j];hot_loop_[j] 1\n");
    assert!(profile.health.unnamed.is_empty());
}

/// Chains that were met before are known by one look, and what an event changes is not: the same profile
/// as by looking at each frame of each sample, which following who has a CPU asks for.
#[test]
fn chains_that_were_met_before_are_what_looking_at_each_frame_makes_of_them() {
    const KERNEL: [u64; 2] = [KERNEL_ADDRESS, KERNEL_ADDRESS + 0x10];
    let hit =
        |pid, kernel: &[u64], user: &[u64]| event(EventKind::Sample(sample(pid, kernel, user)));
    let deep = [0x1010, 0x1020, 0x2030, 0x1040, 0x1050];
    let renamed = |name: &str| {
        let (pid, tid) = (Pid(1), Tid(1));
        event(EventKind::Comm { pid, tid, name: name.as_bytes().to_vec(), exec: false })
    };
    let events = || {
        let mut events =
            vec![named(1, "app"), mapped(1, 0x1000, b"/no/a"), mapped(1, 0x2000, b"/no/b")];
        events.extend([
            named(2, "other"),
            mapped(2, 0x1000, b"/no/b"),
            mapped(2, 0x2000, b"/no/a"),
        ]);
        for _ in 0..3 {
            events.extend([hit(1, &[], &deep), hit(1, &KERNEL, &deep), hit(2, &[], &deep)]);
            // One frame less, and callers that are no code.
            events.extend([hit(1, &[], &deep[1..]), hit(1, &[], &[0x1010, 0x9, 0x7, 0x1050, 0x8])]);
            events.extend([hit(1, &KERNEL, &[]), hit(1, &[], &[]), hit(1, &[], &[0x9000, 0x1010])]);
        }
        // Another name, another file, code without a file in its place.
        events.extend([renamed("app2"), hit(1, &[], &deep), hit(1, &[], &deep)]);
        events.extend([mapped(1, 0x2000, b"/no/c"), hit(1, &[], &deep), hit(1, &[], &deep)]);
        events.extend([mapped(1, 0x2000, b"//anon"), hit(1, &[], &deep), hit(1, &[], &deep)]);
        // Deeper than stacks may be.
        events.push(hit(1, &[], &[0x1010; 1030]));
        events
    };
    let profile = collect(0, events());
    let Ok(by_frame) =
        recorder_with(0, events(), Options { keeps_runs: true, ..options() }).finish();
    for value in [0, 1] {
        assert_eq!(folded(&profile, value), folded(&by_frame, value));
    }
    assert_eq!(profile.health, by_frame.health);
    let found = folded(&profile, 0);
    let caller = "[a+0x4f];[a+0x3f];[b+0x2f];[a+0x1f];[a+0x10]";
    for (line, count) in [
        (format!("app;{caller}"), 3),
        (format!("app2;{caller}"), 2),
        (format!("app2;{}", caller.replace("[b+", "[c+")), 2),
        ("app;[unmapped];[a+0x4f];[unmapped];[unmapped];[a+0x10]".to_owned(), 3),
    ] {
        assert!(found.contains(&format!("{line} {count}\n")), "{line} {count}: {found}");
    }
}
