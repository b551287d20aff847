//! Turns sorted image addresses into frames: DWARF where there is any, the symbol table elsewhere.
//!
//! The addresses of an image are put together by the units of debug information that own them, and
//! the units of all images are worked on side by side. The result does not depend on how many
//! threads there are.

mod job;
mod parallel;

use std::num::NonZeroUsize;
use std::thread;

use flame_image::ImageFile;
use flame_profile::{ImageAddress, Missing};

use crate::namer::Symbolized;
use job::{Job, Task, Worker};
use parallel::in_parallel;

/// What to find out about addresses. The default finds out everything, with one thread a CPU.
#[derive(Clone, Debug)]
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
/// use flame_image::ImageFile;
/// use flame_symbolize::{SymbolizeConfig, Symbolized, symbolize_image};
///
/// let libc = ImageFile::open("/lib/x86_64-linux-gnu/libc.so.6".as_ref())?;
/// let answers = symbolize_image(&libc, &[ImageAddress(0x9d1a4)], &SymbolizeConfig::default());
/// if let Symbolized::Frames(frames) = &answers[0] {
///     assert_eq!(&*frames[0].name, "malloc");
/// }
/// # Ok::<(), flame_image::ImageError>(())
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

fn symbolize_jobs(jobs: &[Job<'_>], config: &SymbolizeConfig) -> Vec<Vec<Symbolized>> {
    let threads = config.threads.or_else(|| thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get);
    // Symbol tables and debug information are opened side by side, too.
    let prepare = |(): &mut (), step: usize| {
        let job = &jobs[step / 2];
        if step.is_multiple_of(2) { job.read_debug() } else { job.read_symbols() }
    };
    in_parallel(threads, jobs.len() * 2, || (), prepare);

    let openers: Vec<_> = jobs.iter().map(Job::opener).collect();
    let mut tasks: Vec<Task> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        tasks.extend(job.tasks(number));
    }
    // The most expensive first, so that none of them is left alone at the end.
    tasks.sort_by_key(|task| std::cmp::Reverse((task.cost, task.positions.len())));
    let new_worker = || Worker::new(jobs, &openers, config);
    let done =
        in_parallel(threads, tasks.len(), new_worker, |worker, task| worker.run(&tasks[task]));
    let unknown = Symbolized::Unknown(Missing::NoSymbol);
    let mut answers: Vec<Vec<Symbolized>> =
        jobs.iter().map(|job| vec![unknown.clone(); job.addresses.len()]).collect();
    for (task, found) in done {
        let task = &tasks[task];
        for (position, answer) in task.positions.iter().zip(found) {
            answers[task.job][*position] = answer;
        }
    }
    answers
}

#[cfg(test)]
mod tests;
