use flame_profile::FileOffset;

use super::*;
use crate::images::FileId;

const SERVER: &[u8] = b"/usr/bin/server";

fn map(pid: u32, start: u64, path: &'static [u8]) -> EventKind<'static> {
    EventKind::Mapping(MappingEvent {
        pid: Pid(pid),
        start: ProcessAddress(start),
        end: ProcessAddress(start + 0x1000),
        offset: FileOffset(0),
        file: FileId::None,
        path: path.into(),
    })
}

fn comm(pid: u32, name: &[u8], exec: bool) -> EventKind<'static> {
    EventKind::Comm { pid: Pid(pid), tid: Tid(pid), name: name.to_vec(), exec }
}

fn fork(pid: u32, parent: u32) -> EventKind<'static> {
    let (parent, parent_tid) = (Pid(parent), Tid(parent));
    EventKind::Fork { pid: Pid(pid), tid: Tid(pid), parent, parent_tid }
}

/// The processes after those events, one second apart.
fn after(events: &[EventKind<'_>]) -> Processes {
    let mut processes = Processes::default();
    for (second, event) in events.iter().enumerate() {
        processes.apply(Nanos(second as u64 * 1_000_000_000), event);
    }
    processes
}

fn path_at(processes: &Processes, pid: u32, address: u64) -> Option<Vec<u8>> {
    let found = processes.find(Pid(pid), ProcessAddress(address))?;
    Some(processes.image(found.mapping.image)?.path.to_vec())
}

fn name(processes: &Processes, tid: u32) -> Option<&str> {
    processes.thread_name(Tid(tid)).map(|name| &**name)
}

#[test]
fn a_forked_child_has_its_parents_memory_until_it_changes_its_own() {
    let processes = after(&[
        comm(1, b"server", true),
        map(1, 0x1000, SERVER),
        fork(2, 1),
        map(2, 0x8000, b"/lib/plugin.so"),
    ]);
    assert_eq!(path_at(&processes, 2, 0x1800).as_deref(), Some(SERVER));
    assert_eq!(path_at(&processes, 2, 0x8800).as_deref(), Some(&b"/lib/plugin.so"[..]));
    assert_eq!(path_at(&processes, 1, 0x8800), None);
    assert_eq!(name(&processes, 2), Some("server"));
}

#[test]
fn exec_empties_the_address_space_and_renames() {
    let processes = after(&[map(1, 0x1000, SERVER), comm(1, b"ls", true)]);
    assert_eq!(path_at(&processes, 1, 0x1800), None);
    assert_eq!(name(&processes, 1), Some("ls"));
}

#[test]
fn a_rename_keeps_the_address_space() {
    let processes = after(&[map(1, 0x1000, SERVER), comm(1, b"worker \xff", false)]);
    assert_eq!(path_at(&processes, 1, 0x1800).as_deref(), Some(SERVER));
    assert_eq!(name(&processes, 1), Some("worker \\xff"));
}

#[test]
fn an_ended_process_is_forgotten_after_a_while_unless_its_number_is_used_again() {
    let exit = || EventKind::Exit { pid: Pid(1), tid: Tid(1) };
    let soon = after(&[map(1, 0x1000, SERVER), exit(), EventKind::Other]);
    assert_eq!(path_at(&soon, 1, 0x1800).as_deref(), Some(SERVER));
    let later = after(&[map(1, 0x1000, SERVER), exit(), EventKind::Other, EventKind::Other]);
    assert_eq!(path_at(&later, 1, 0x1800), None);
    let reused = after(&[map(1, 0x1000, SERVER), exit(), fork(1, 9), EventKind::Other]);
    assert_eq!(path_at(&reused, 1, 0x1800).as_deref(), Some(SERVER));
}

#[test]
fn what_events_said_stays_on_top_of_what_proc_said() {
    let mut processes = after(&[map(1, 0x1000, b"/lib/new.so")]);
    let old = crate::parse_maps(b"1000-3000 r-xp 00000000 fe:00 7 /lib/old.so\n");
    processes.add_existing(Pid(1), b"server", old);
    assert_eq!(path_at(&processes, 1, 0x1800).as_deref(), Some(&b"/lib/new.so"[..]));
    assert_eq!(path_at(&processes, 1, 0x2800).as_deref(), Some(&b"/lib/old.so"[..]));
}
