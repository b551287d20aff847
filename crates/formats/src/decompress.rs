//! Compressed inputs as what they hold: gzip, zstd and xz, and UTF-16 as UTF-8.
//!
//! What can be read of a file that is cut short or broken is handed out; that it is comes out at
//! its end, from [`Trouble`].

use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// Bytes that tell what an input is packed in.
pub(crate) const MAGIC: usize = 6;
/// An input may be packed twice: `perf.data` has compressed parts, archives of logs have all.
const MAX_LAYERS: usize = 2;

/// A reader of bytes, wherever they come from.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// All that a reader holds, unpacked where it is packed by gzip, zstd or xz, and what is wrong with
/// the end of packed data; what stands before that is there.
///
/// # Errors
/// Those of the reader, and packed data that is broken from its start.
pub fn read_unpacked(reader: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Option<String>)> {
    let (mut reader, trouble) = unpacked(reader)?;
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok((bytes, trouble.get()))
}

/// Whether an input that starts like that is packed by gzip, zstd or xz.
pub fn is_packed(start: &[u8]) -> bool {
    matches!(
        start,
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0xfd, b'7', b'z', b'X', b'Z', 0, ..]
    ) || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// What an input holds, and what is said of it if it ends too early.
pub(crate) fn unpacked(reader: Bytes) -> io::Result<(Bytes, Trouble)> {
    let trouble = Trouble::default();
    let (mut start, mut reader) = peeked(reader)?;
    for _ in 0..MAX_LAYERS {
        if !is_packed(&start) {
            break;
        }
        let packed = BufReader::with_capacity(1 << 16, reader);
        let decoder: Bytes = match start.first() {
            Some(0x1f) => Box::new(MultiGzDecoder::new(packed)),
            Some(0xfd) => Box::new(Pieces(XzReader::new(packed, true))),
            _ => Box::new(ZstdReader::new(packed)),
        };
        let tolerant = Tolerant { reader: decoder, trouble: trouble.clone(), has_read: false };
        (start, reader) = peeked(Box::new(tolerant))?;
    }
    Ok((reader, trouble))
}

/// The first bytes of a reader, and one that has them still.
pub(crate) fn peeked(mut reader: Bytes) -> io::Result<(Vec<u8>, Bytes)> {
    let mut start = Vec::with_capacity(MAGIC);
    (&mut reader).take(MAGIC as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Box::new(io::Cursor::new(start).chain(reader))))
}

/// What is wrong with the end of an input, where anything is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, what: &io::Error) {
        let mut trouble = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert_with(|| what.to_string());
    }
}

/// Ends where packed data is broken.
struct Tolerant {
    reader: Bytes,
    trouble: Trouble,
    has_read: bool,
}

impl Read for Tolerant {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.reader.read(into) {
            Ok(count) => {
                self.has_read |= count > 0;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            // What the system says is not about the packed data.
            Err(error) if !self.has_read || error.raw_os_error().is_some() => Err(error),
            Err(error) => {
                self.trouble.set(&error);
                Ok(0)
            }
        }
    }
}

/// Reads little at a time: xz's decoder forgets what it has put into a buffer when it meets an error.
struct Pieces<R>(R);

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        const PIECE: usize = 1 << 12;
        let len = into.len().min(PIECE);
        self.0.read(&mut into[..len])
    }
}

/// All frames of a zstd file.
struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
    /// What is wrong with the frame, once all that was unpacked of it is handed out.
    broken: Option<io::Error>,
}

impl<R: Read> ZstdReader<R> {
    fn new(source: R) -> ZstdReader<R> {
        ZstdReader { source, decoder: FrameDecoder::new(), is_in_frame: false, broken: None }
    }

    /// Compares the checksum of a frame that has one, all of which is handed out.
    fn check_sum(&self) -> io::Result<()> {
        let (told, counted) =
            (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        match told.is_none() || told == counted {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum does not match")),
        }
    }

    /// Goes to the next frame; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            let mut first = [0];
            if self.source.read(&mut first)? == 0 {
                return Ok(false);
            }
            let mut source = first.as_slice().chain(&mut self.source);
            match self.decoder.reset(&mut source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(broken(error)),
            }
        }
    }
}

/// A last block of nothing, and a checksum, which is not compared then: RFC 8878, 3.1.1.2.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

fn broken(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<R: Read> Read for ZstdReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
        loop {
            if self.is_in_frame && self.decoder.can_collect() > 0 {
                return self.decoder.read(into);
            }
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if self.is_in_frame && self.decoder.is_finished() {
                self.check_sum()?;
            }
            if !self.is_in_frame || self.decoder.is_finished() {
                self.is_in_frame = self.next_frame()?;
                if !self.is_in_frame {
                    return Ok(0);
                }
            }
            if let Err(error) = self.decoder.decode_blocks(&mut self.source, UptoBlocks(1)) {
                // The decoder keeps what later blocks may refer to, up to 8 MiB, until the last one.
                self.decoder.decode_blocks(LAST_BLOCK, UptoBlocks(1)).map_err(broken)?;
                self.broken = Some(broken(error));
            }
        }
    }
}

/// How the text of an input is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Bytes, or UTF-8, behind this many bytes of a byte order mark.
    Bytes { mark: usize },
    /// UTF-16, the low byte first or not, behind a mark or not.
    Utf16 { is_little: bool, mark: usize },
}

impl Encoding {
    /// What the first bytes show: a mark, or every other of them zero.
    pub(crate) fn detect(start: &[u8]) -> Encoding {
        match start {
            [0xef, 0xbb, 0xbf, ..] => return Encoding::Bytes { mark: 3 },
            [0xff, 0xfe, ..] => return Encoding::Utf16 { is_little: true, mark: 2 },
            [0xfe, 0xff, ..] => return Encoding::Utf16 { is_little: false, mark: 2 },
            _ => {}
        }
        let pairs = start.as_chunks::<2>().0;
        let is_text = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
        let all = |zero: usize| {
            pairs.len() >= 3 && pairs.iter().all(|pair| pair[zero] == 0 && is_text(pair[1 - zero]))
        };
        match (all(1), all(0)) {
            (true, _) => Encoding::Utf16 { is_little: true, mark: 0 },
            (_, true) => Encoding::Utf16 { is_little: false, mark: 0 },
            _ => Encoding::Bytes { mark: 0 },
        }
    }
}

/// UTF-16 as UTF-8; what is not a character becomes U+FFFD.
pub(crate) struct Utf16Reader {
    reader: Bytes,
    is_little: bool,
    /// A lone byte or the first half of a pair, between two reads.
    rest: Vec<u8>,
    text: Vec<u8>,
    handed_out: usize,
}

impl Utf16Reader {
    /// A reader of what stands behind the mark.
    pub(crate) fn new(reader: Bytes, is_little: bool) -> Utf16Reader {
        Utf16Reader { reader, is_little, rest: Vec::new(), text: Vec::new(), handed_out: 0 }
    }

    fn convert(&mut self, bytes: &[u8], is_last: bool) {
        let (pairs, lone) = bytes.as_chunks::<2>();
        let unit = |pair: &[u8; 2]| match self.is_little {
            true => u16::from_le_bytes(*pair),
            false => u16::from_be_bytes(*pair),
        };
        let mut units: Vec<u16> = pairs.iter().map(unit).collect();
        self.rest.clear();
        if !is_last && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
            units.pop();
            self.rest.extend(pairs.last().into_iter().flatten());
        }
        self.rest.extend(lone);
        for unit in char::decode_utf16(units) {
            let c = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

impl Read for Utf16Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.handed_out == self.text.len() {
            self.text.clear();
            self.handed_out = 0;
            let mut block = std::mem::take(&mut self.rest);
            let kept = block.len();
            block.resize(1 << 16, 0);
            let count = self.reader.read(&mut block[kept..])?;
            block.truncate(kept + count);
            self.convert(&block, count == 0);
            if count == 0 {
                break;
            }
        }
        let count = (&self.text[self.handed_out..]).read(into)?;
        self.handed_out += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: Vec<u8>) -> io::Result<(Vec<u8>, Option<String>)> {
        let (mut reader, trouble) = unpacked(Box::new(io::Cursor::new(bytes)))?;
        let mut text = Vec::new();
        reader.read_to_end(&mut text)?;
        Ok((text, trouble.get()))
    }

    #[test]
    fn what_is_whole_of_a_truncated_file_is_read() {
        let text: Vec<u8> = (0..20_000).flat_map(|n| format!("a;b{n} 1\n").into_bytes()).collect();
        let packed = gzipped(&text);
        assert_eq!(read(packed.clone()).unwrap(), (text.clone(), None));
        for cut in [packed.len() - 1, packed.len() / 2, 2000] {
            let (found, trouble) = read(packed[..cut].to_vec()).unwrap();
            assert!(trouble.is_some() && text.starts_with(&found));
            assert!(cut < packed.len() / 4 || found.len() > text.len() / 4, "{}", found.len());
        }
        assert!(read(b"\x1f\x8bgarbage".to_vec()).is_err());
        let twice = gzipped(&packed);
        assert_eq!(read(twice).unwrap().0, text);
    }

    /// `a;b 1` as zstd packs it, with a checksum behind it.
    #[test]
    fn what_a_checksum_does_not_match_is_said() {
        let packed = b"\x28\xb5\x2f\xfd\x04\x58\x31\x00\x00a;b 1\n\x7a\x2e\x2f\x09";
        assert_eq!(read(packed.to_vec()).unwrap(), (b"a;b 1\n".to_vec(), None));
        let mut broken = packed.to_vec();
        broken[13] = b'2';
        let (found, trouble) = read(broken).unwrap();
        assert_eq!(found, b"a;b 2\n");
        assert_eq!(trouble.unwrap(), "its checksum does not match");
    }

    #[test]
    fn zstd_frames_follow_each_other() {
        // Two frames of a raw block each and one to be skipped, by hand: RFC 8878.
        let frame = |text: &[u8]| {
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8];
            let header = 1 | (text.len() as u32) << 3;
            frame.extend(&header.to_le_bytes()[..3]);
            frame.extend(text);
            frame
        };
        let skip = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 7, 7, 7];
        let file = [&skip[..], &frame(b"a;b 1\n"), &skip, &frame(b"a;c 2\n")].concat();
        assert_eq!(read(file.clone()).unwrap(), (b"a;b 1\na;c 2\n".to_vec(), None));
        for cut in 0..file.len() {
            let _ = read(file[..cut].to_vec());
        }
        // Of a frame that is cut within its second block, the first is there: the window is larger.
        let mut cut = frame(b"a;b 1\n");
        let header = cut.len() - b"a;b 1\n".len() - 3;
        cut[header] &= !1;
        cut.extend([3 << 3 | 1, 0, 0, b'x']);
        let (found, trouble) = read(cut).unwrap();
        assert_eq!((found.as_slice(), trouble.is_some()), (&b"a;b 1\n"[..], true));
    }

    #[test]
    fn utf16_becomes_utf8_in_both_orders() {
        let text = "main;größe;🔥 7\n".repeat(9000);
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for (bytes, is_little) in [(little, true), (big, false)] {
            assert_eq!(Encoding::detect(&bytes[..8]), Encoding::Utf16 { is_little, mark: 0 });
            let reader = Utf16Reader::new(Box::new(io::Cursor::new(bytes)), is_little);
            assert!(io::read_to_string(reader).unwrap() == text);
        }
        assert_eq!(Encoding::detect(b"\xef\xbb\xbfa 1"), Encoding::Bytes { mark: 3 });
        assert_eq!(Encoding::detect(b"a\0b"), Encoding::Bytes { mark: 0 });
        assert_eq!(Encoding::detect(b"\x01\0\x02\0\x03\0"), Encoding::Bytes { mark: 0 });
    }
}
