//! Where the debug information of compiled methods lies: behind their code, or in memory of its own.

use std::ops::Range;

use crate::blob::LARGEST;
use crate::layout::{Layout, Parts};
use crate::memory::{Memory, size, word};

/// Debug information of a compiled method, as it stands in memory.
#[derive(Debug)]
pub(crate) struct DebugInformation {
    /// Entries of addresses in the code.
    pub(crate) pcs: Vec<u8>,
    pub(crate) scopes: Vec<u8>,
    /// Addresses of methods and classes.
    pub(crate) metadata: Vec<u8>,
}

impl DebugInformation {
    /// That of the method whose bytes those are, from its start to its end.
    pub(crate) fn read(
        bytes: &[u8],
        start: u64,
        layout: &Layout,
        memory: &dyn Memory,
    ) -> Option<DebugInformation> {
        let offset = |at| size(bytes, at).map(|offset| offset as usize);
        match layout.compiled.parts {
            Parts::Inside { scopes, metadata, pcs, pcs_end } => {
                let part = |range: Range<usize>| bytes.get(range).map(<[u8]>::to_vec);
                let scopes = usize::try_from(word(bytes, scopes)?.checked_sub(start)?).ok()?;
                let (metadata, pcs, pcs_end) = (offset(metadata)?, offset(pcs)?, offset(pcs_end)?);
                Some(DebugInformation {
                    pcs: part(pcs..pcs_end)?,
                    scopes: part(scopes..pcs)?,
                    metadata: part(metadata..scopes)?,
                })
            }
            Parts::Apart { changing, relocations, fixed, pcs, scopes } => {
                let read = |[address, len]: [u32; 2]| {
                    let len = size(bytes, len).filter(|len| *len <= LARGEST)?;
                    let mut part = vec![0; len as usize];
                    let is_read = len == 0 || memory.read(word(bytes, address)?, &mut part);
                    is_read.then_some(part)
                };
                let (changing, fixed) = (read(changing)?, read(fixed)?);
                let (pcs, scopes) = (offset(pcs)?, offset(scopes)?);
                Some(DebugInformation {
                    pcs: fixed.get(pcs..scopes)?.to_vec(),
                    // What follows them is not referred to by any entry.
                    scopes: fixed.get(scopes..)?.to_vec(),
                    metadata: changing.get(offset(relocations)?..)?.to_vec(),
                })
            }
        }
    }
}
