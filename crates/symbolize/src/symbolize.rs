//! Turns sorted image addresses into frames: DWARF where there is any, the symbol table elsewhere.
//!
//! Images are worked on side by side, and the addresses of one with much debug information are
//! shared out as well. The result does not depend on how many threads there are.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flame_profile::{ImageAddress, Missing};
use object::{Object, ObjectSection};

use crate::debug_info::DebugInfo;
use crate::image::ImageFile;
use crate::namer::{Namer, Symbolized};

/// Stack of each thread: addr2line recurses as deep as functions are inlined, and one address space
/// has room for it. Only what is touched costs memory.
const STACK_LEN: usize = 16 << 20;

/// From this much debug information on, in bytes as stored, one image keeps several threads busy.
const SPLIT_DEBUG_LEN: u64 = 4 << 20;

/// The fewest addresses that are worth a thread: each reads the roots of all units anew.
const SPLIT_ADDRESSES: usize = 256;

/// What to find out about addresses. The default finds out everything, with one thread a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolizeConfig {
    /// Frames for inlined functions, not only the function that was called. Default: true.
    pub inlined: bool,
    /// Source files and lines. Default: true, since they cost nothing beyond the inlined frames.
    pub lines: bool,
    /// How many threads to use at most; `None` = as many as there are CPUs to run on.
    pub threads: Option<NonZeroUsize>,
}

impl Default for SymbolizeConfig {
    fn default() -> SymbolizeConfig {
        SymbolizeConfig { inlined: true, lines: true, threads: None }
    }
}

/// Names for addresses of one image: one answer for each address, in their order.
///
/// `addresses` are sorted and distinct; other orders cost time and give the same answers. Each is
/// looked up as it stands, so pass return addresses minus 1.
///
/// ```no_run
/// use flame_profile::ImageAddress;
/// use flame_symbolize::{ImageFile, SymbolizeConfig, Symbolized, symbolize_image};
///
/// let libc = ImageFile::open("/lib/x86_64-linux-gnu/libc.so.6".as_ref())?;
/// let answers = symbolize_image(&libc, &[ImageAddress(0x9d1a4)], &SymbolizeConfig::default());
/// if let Symbolized::Frames(frames) = &answers[0] {
///     assert_eq!(&*frames[0].name, "malloc");
/// }
/// # Ok::<(), flame_symbolize::ImageError>(())
/// ```
pub fn symbolize_image(
    image: &ImageFile,
    addresses: &[ImageAddress],
    config: &SymbolizeConfig,
) -> Vec<Symbolized> {
    symbolize_jobs(&[Job::new(image, addresses)], config).pop().unwrap_or_default()
}

/// The same for several images side by side: one list of answers for each job, in their order.
pub fn symbolize_images(
    jobs: &[(ImageFile, Vec<ImageAddress>)],
    config: &SymbolizeConfig,
) -> Vec<Vec<Symbolized>> {
    let jobs: Vec<Job> = jobs.iter().map(|(image, addresses)| Job::new(image, addresses)).collect();
    symbolize_jobs(&jobs, config)
}

/// One image with what is looked up in it.
struct Job<'a> {
    image: &'a ImageFile,
    /// The file with the debug information: the image itself or its companion.
    debug_image: &'a ImageFile,
    addresses: &'a [ImageAddress],
    /// Size of the debug information as stored.
    debug_len: u64,
    /// Shared by the tasks of the job, and freed with it.
    debug: OnceLock<Option<DebugInfo>>,
}

/// A part of a job, for one thread.
struct Task {
    job: usize,
    range: Range<usize>,
}

impl<'a> Job<'a> {
    fn new(image: &'a ImageFile, addresses: &'a [ImageAddress]) -> Job<'a> {
        let debug_image = image.companion().unwrap_or(image);
        let elf = debug_image.elf();
        let info = elf.as_ref().and_then(|elf| elf.section_by_name(".debug_info"));
        let debug_len = info.map_or(0, |section| section.size());
        Job { image, debug_image, addresses, debug_len, debug: OnceLock::new() }
    }

    fn run(&self, range: Range<usize>, config: &SymbolizeConfig) -> Vec<Symbolized> {
        let addresses = self.addresses.get(range).unwrap_or(&[]);
        let with_debug = || {
            let debug = self.debug.get_or_init(|| DebugInfo::load(self.debug_image)).as_ref();
            let context = debug.and_then(DebugInfo::context);
            Namer::new(self.image.symbols(), context.as_ref(), config).name_all(addresses)
        };
        // A parser that panics at damaged debug information must not cost the recording.
        catch_unwind(AssertUnwindSafe(with_debug)).unwrap_or_else(|_| {
            tracing::warn!(image = ?self.image, "debug information left out: it cannot be parsed");
            Namer::new(self.image.symbols(), None, config).name_all(addresses)
        })
    }
}

fn symbolize_jobs(jobs: &[Job<'_>], config: &SymbolizeConfig) -> Vec<Vec<Symbolized>> {
    let threads = config.threads.or_else(|| thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get);
    let tasks = share_out(jobs, threads);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((task, jobs[task.job].run(task.range.clone(), config)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().stack_size(STACK_LEN).spawn_scoped(scope, work);
        let workers: Vec<_> = (0..threads.min(tasks.len())).map_while(|i| spawn(i).ok()).collect();
        // Where not even one thread can be had, the work is done here.
        let mut done = if workers.is_empty() { work() } else { Vec::new() };
        done.extend(workers.into_iter().filter_map(|worker| worker.join().ok()).flatten());
        done
    });
    done.sort_by_key(|(task, _)| (task.job, task.range.start));
    let mut answers: Vec<Vec<Symbolized>> = jobs.iter().map(|_| Vec::new()).collect();
    for (task, part) in done {
        answers[task.job].extend(part);
    }
    for (job, answers) in jobs.iter().zip(&mut answers) {
        answers.resize(job.addresses.len(), Symbolized::Unknown(Missing::NoSymbol));
    }
    answers
}

/// The tasks, the most expensive first so that none of them is left alone at the end.
fn share_out(jobs: &[Job<'_>], threads: usize) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let len = job.addresses.len();
        let parts = match job.debug_len {
            SPLIT_DEBUG_LEN.. => (len / SPLIT_ADDRESSES).clamp(1, threads),
            _ => 1,
        };
        let step = len.div_ceil(parts).max(1);
        let ranges = (0..len).step_by(step).map(|start| start..(start + step).min(len));
        tasks.extend(ranges.map(|range| Task { job: index, range }));
    }
    tasks.sort_by_key(|task| std::cmp::Reverse((jobs[task.job].debug_len, task.range.len())));
    tasks
}

#[cfg(test)]
mod tests;
