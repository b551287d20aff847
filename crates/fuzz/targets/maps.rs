//! `/proc/PID/maps`: any text gives mappings that an address space takes.
#![no_main]

use flame_events::{Processes, parse_maps};
use flame_profile::{Pid, ProcessAddress};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let maps = parse_maps(input);
    let addresses: Vec<ProcessAddress> = maps.iter().map(|mapping| mapping.start).collect();
    let mut processes = Processes::default();
    processes.add_existing(Pid(1), b"name", maps);
    for address in addresses {
        let _ = processes.find(Pid(1), address);
    }
});
