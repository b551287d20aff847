//! Profiles to write: one with a bit of everything, and random ones.

use std::collections::BTreeMap;

use flame_profile::{BuildId, Coverage, FileOffset, Frame, FrameKind, Health, Hz, Image};
use flame_profile::{
    ImageAddress, ImageId, Location, LocationId, Meta, Missing, Nanos, Pid, ProcessAddress, Profile,
};
use flame_profile::{StackEnd, StackId, Thread, Tid, ValueType};

pub(crate) fn image(path: &str, build_id: &[u8], start: u64) -> Image {
    Image {
        path: path.to_owned(),
        build_id: BuildId::from_bytes(build_id),
        start: ProcessAddress(start),
        end: ProcessAddress(start + 0x2000),
        offset: FileOffset(0x1000),
    }
}

/// A CPU profile of a server: an inlined function, kernel code, JIT code and a truncated stack.
pub(crate) fn server() -> Profile {
    let cpu = ValueType::new("cpu", "nanoseconds");
    let mut profile = Profile::new(vec![ValueType::samples(), cpu]);
    profile.default_value = 1;
    let server = profile.add_image(image("/opt/server", &[0xab, 0x01], 0x5555_5555_5000));
    let libc = profile.add_image(image("/usr/lib/libc.so.6", &[], 0x7fff_f7d0_0000));
    let (file, name) = (profile.intern("src/main.rs"), profile.intern("parse_json"));
    let inlined = Frame { name, kind: FrameKind::Inlined, file: Some(file), line: Some(12) };
    let name = profile.intern("core::ops::Fn<(A,)>::call");
    let outer = Frame { name, kind: FrameKind::User, file: Some(file), line: Some(40) };
    let (inlined, outer) = (profile.add_whole_frame(inlined), profile.add_whole_frame(outer));
    let frames = vec![inlined, outer];
    let address = ImageAddress(0x1234);
    let work = profile.add_location(Location { image: Some(server), address, frames });
    let mut single = |image, address, name, kind| {
        let frames = vec![profile.add_frame(name, kind)];
        profile.add_location(Location { image, address: ImageAddress(address), frames })
    };
    let start = single(Some(server), 0x1000, "_start", FrameKind::User);
    let read = single(Some(libc), 0x114_980, "read", FrameKind::User);
    let kernel = single(None, 0xffff_ffff_8120_0000, "vfs_read", FrameKind::Kernel);
    let jit = single(None, 0x7f00_dead_0000, "LazyCompile:*render", FrameKind::Jit);
    let mark = single(None, 0, "[truncated stack]", FrameKind::Mark);
    let lost = single(None, 0xbad, "[0xbad]", FrameKind::User);
    let (comm, process) = (profile.intern("worker 1"), profile.intern("server"));
    let (pid, tid) = (Some(Pid(4242)), Some(Tid(4243)));
    let worker = Thread { name: comm, process: Some(process), pid, tid };
    let worker = profile.add_whole_thread(worker);
    let main = profile.add_thread("server", Pid(4242), Tid(4242));
    let nameless = Thread { name: profile.intern(""), process: None, pid: None, tid: None };
    let nameless = profile.add_whole_thread(nameless);
    let rows = [
        (worker, &[start, work, read, kernel][..], [3, 30_303_030]),
        (main, &[start, work], [1, 10_101_010]),
        (worker, &[mark, jit], [2, 20_202_020]),
        (main, &[lost], [0, 5]),
        (nameless, &[], [1, 0]),
    ];
    for (thread, locations, values) in rows {
        let stack = locations.iter().fold(StackId::EMPTY, |at, l| profile.push_stack(at, *l));
        profile.add_sample(thread, stack, &values);
    }
    profile.meta = meta();
    profile.health = health();
    profile
}

fn meta() -> Meta {
    Meta {
        event: Some("cpu-clock".to_owned()),
        frequency: Some(Hz(99)),
        period: None,
        start: Some(Nanos(1_700_000_000_000_000_000)),
        duration: Some(Nanos(30_000_000_000)),
        host: Some("db1".to_owned()),
        target: Some("/opt/server --port 80".to_owned()),
        command: Some("flame record -F 99 -p 17".to_owned()),
        producer: Some("flame 0.1.0".to_owned()),
    }
}

fn health() -> Health {
    Health {
        samples: 7,
        lost_records: 2,
        stack_ends: BTreeMap::from([(StackEnd::Root, 5), (StackEnd::CopyTooShort, 2)]),
        unnamed: BTreeMap::from([((String::new(), Missing::NotMapped), 1)]),
        coverage: Some(Coverage { sampled: Nanos(60), accounted: Nanos(61) }),
        notes: vec!["the ring was halved".to_owned()],
        ..Health::default()
    }
}

/// The same numbers for the same seed (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| value(self))
    }

    fn text(&mut self) -> String {
        let len = self.below(6);
        let mut letter = || char::from_u32(0x20 + self.below(0x300) as u32).unwrap_or('x');
        (0..len).map(|_| letter()).collect()
    }
}

const KINDS: [FrameKind; 5] =
    [FrameKind::User, FrameKind::Kernel, FrameKind::Inlined, FrameKind::Jit, FrameKind::Mark];

/// Any profile at all: every kind at every place, odd names, all ranges of numbers.
pub(crate) fn random(seed: u64) -> Profile {
    let mut random = Random(seed);
    let types = 1 + random.below(3);
    let types = (0..types).map(|i| ValueType::new(format!("value{i}"), random.text()));
    let mut profile = Profile::new(types.collect());
    profile.default_value = random.below(profile.value_types().len() as u64) as usize;
    for _ in 0..random.below(4) {
        let build_id = random.next().to_le_bytes();
        let build_id = &build_id[..random.below(9) as usize];
        let path = random.maybe(|_| "[kernel]".to_owned()).unwrap_or_else(|| random.text());
        let start = random.next() >> 1;
        profile.add_image(image(&path, build_id, start));
    }
    let locations: Vec<_> =
        (0..1 + random.below(20)).map(|_| location(&mut random, &mut profile)).collect();
    for _ in 0..random.below(30) {
        let name = profile.intern(&random.text());
        let process = random.maybe(|_| profile.intern("process"));
        let pid = random.next() as u32;
        let (pid, tid) = (random.maybe(|_| Pid(pid)), random.maybe(|_| Tid(0)));
        let thread = profile.add_whole_thread(Thread { name, process, pid, tid });
        let depth = random.below(12);
        let stack = (0..depth).fold(StackId::EMPTY, |at, _| {
            profile.push_stack(at, locations[random.below(locations.len() as u64) as usize])
        });
        let values = profile.value_types().iter().map(|_| random.next() >> random.below(64).max(8));
        let values: Vec<u64> = values.collect();
        profile.add_sample(thread, stack, &values);
    }
    profile.meta.period = random.maybe(Random::next);
    profile.meta.event = random.maybe(Random::text);
    profile.meta.start = random.maybe(|random| Nanos(random.next()));
    profile.health.samples = random.next();
    profile.health.notes = (0..random.below(3)).map(|_| random.text()).collect();
    profile
}

fn location(random: &mut Random, profile: &mut Profile) -> LocationId {
    let mut frames = Vec::new();
    for _ in 0..1 + random.below(3) {
        let name = profile.intern(&random.text());
        let kind = KINDS[random.below(5) as usize];
        let file = random.maybe(|_| profile.intern("src/lib.rs"));
        let line = random.maybe(|random| 1 + random.below(u64::from(u32::MAX)) as u32);
        frames.push(profile.add_whole_frame(Frame { name, kind, file, line }));
    }
    let images = profile.images().len() as u64;
    let image = (images > 0).then(|| random.below(images) as usize);
    let image = image.and_then(|image| random.maybe(|_| ImageId::from_index(image)));
    profile.add_location(Location { image, address: ImageAddress(random.next()), frames })
}
