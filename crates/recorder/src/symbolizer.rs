//! Distinct addresses become frames, images side by side. What was found once stays known, so that
//! a second look at a recording costs what is new.

use std::fs::File;
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use flame_image::ImageFile;
use flame_profile::{ImageAddress, ImageId};
use flame_symbolize::{KernelError, KernelSymbols, SymbolizeConfig, Symbolized, symbolize_images};
use rustc_hash::FxHashMap;

use crate::config::{KALLSYMS, Options};
use crate::images::OpenImage;
use crate::located_stacks::LocatedStacks;
use crate::location::CodeLocation;
use crate::locator::Locator;

/// What is known of addresses.
#[derive(Debug)]
pub(crate) struct Symbolizer {
    config: SymbolizeConfig,
    open_kernel: fn() -> io::Result<File>,
    /// Open, and not read yet.
    kallsyms: Option<io::Result<File>>,
    kernel: Result<KernelSymbols, KernelError>,
    /// Whether `kernel` has been read.
    has_kernel: bool,
    /// How many pieces of code that the kernel made while running are among its symbols.
    kernel_code: usize,
    known: FxHashMap<(ImageId, ImageAddress), Symbolized>,
}

impl Symbolizer {
    pub(crate) fn new(options: &Options) -> Symbolizer {
        Symbolizer {
            config: options.symbols.clone(),
            open_kernel: options.kernel_symbols,
            kallsyms: None,
            kernel: Ok(KernelSymbols::parse(b"")),
            has_kernel: false,
            kernel_code: 0,
            known: FxHashMap::default(),
        }
    }

    /// Opens the kernel's symbols. Whether addresses are shown is decided by the rights at this
    /// time, since Linux 4.15; those of the reading do not matter.
    pub(crate) fn open_kernel(&mut self) {
        if !self.has_kernel && self.kallsyms.is_none() {
            self.kallsyms = Some((self.open_kernel)());
        }
    }

    /// Has the kernel's symbols taken for those of another kernel.
    pub(crate) fn has_other_kernel(&mut self) {
        self.open_kernel = || Err(io::ErrorKind::Unsupported.into());
        self.kallsyms = None;
    }

    /// What is at an address of an image that was looked up.
    pub(crate) fn at(&self, image: ImageId, address: ImageAddress) -> Option<&Symbolized> {
        self.known.get(&(image, address))
    }

    /// The kernel's symbols; none where no stack had a frame of the kernel.
    pub(crate) fn kernel(&self) -> Result<&KernelSymbols, &KernelError> {
        self.kernel.as_ref()
    }

    /// Looks up what is new in stacks.
    pub(crate) fn look_up(&mut self, stacks: &LocatedStacks, code: &Locator) {
        let in_kernel = |entry| matches!(entry, CodeLocation::Kernel(_) | CodeLocation::Waiting(_));
        let needs_kernel = !self.has_kernel && stacks.locations().any(in_kernel);
        if needs_kernel {
            self.open_kernel();
        }
        let kallsyms = self.kallsyms.take_if(|_| needs_kernel);
        let (ids, jobs) = self.unknown(stacks, code);
        // The kernel takes as long to print its symbols as everything else takes together.
        let (kernel, answers) = thread::scope(|scope| {
            let read = |file| KernelSymbols::read(file, Path::new(KALLSYMS));
            let kernel = kallsyms.map(|file| scope.spawn(move || read(file)));
            let answers = symbolize_images(&jobs, &self.config);
            (kernel.map(thread::ScopedJoinHandle::join), answers)
        });
        if let Some(kernel) = kernel {
            self.kernel = kernel.unwrap_or_else(|panic| resume_unwind(panic));
            (self.has_kernel, self.kernel_code) = (true, 0);
            if let Err(error) = &self.kernel {
                tracing::info!(%error, "kernel functions have no names");
            }
        }
        if let Ok(symbols) = &mut self.kernel {
            // What is loaded no longer is not in the table.
            for made in code.kernel_code.iter().skip(self.kernel_code) {
                let module = made.is_bpf.then_some("bpf");
                symbols.insert(made.start, made.len, &made.name, module);
            }
            self.kernel_code = code.kernel_code.len();
        }
        for ((id, (_, addresses)), answers) in ids.into_iter().zip(&jobs).zip(answers) {
            let keys = addresses.iter().map(|address| (id, *address));
            self.known.extend(keys.zip(answers));
        }
    }

    /// The addresses in files that nothing is known of yet, sorted.
    fn unknown(
        &self,
        stacks: &LocatedStacks,
        code: &Locator,
    ) -> (Vec<ImageId>, Vec<(ImageFile, Vec<ImageAddress>)>) {
        let mut wanted: FxHashMap<ImageId, Vec<ImageAddress>> = FxHashMap::default();
        for location in stacks.locations() {
            if let CodeLocation::Image(image, offset) = location
                && let Some(OpenImage::File(file, _)) = code.images.get(image)
                && let Some(address) = file.to_image_address(offset)
                && !self.known.contains_key(&(image, address))
            {
                wanted.entry(image).or_default().push(address);
            }
        }
        let mut wanted: Vec<(ImageId, Vec<ImageAddress>)> = wanted.into_iter().collect();
        wanted.sort();
        let file = |(id, mut addresses): (ImageId, Vec<ImageAddress>)| {
            let Some(OpenImage::File(file, _)) = code.images.get(id) else { return None };
            addresses.sort_unstable();
            addresses.dedup();
            Some((id, (file.clone(), addresses)))
        };
        wanted.into_iter().filter_map(file).unzip()
    }
}
