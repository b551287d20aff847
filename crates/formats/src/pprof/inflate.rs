//! Bytes of a file, gzipped or not, into uncompressed bytes of bounded length.

use std::borrow::Cow;
use std::io::Read;

use flame_profile::ByteLen;
use flate2::bufread::MultiGzDecoder;

use super::error::PprofError;

/// How long an uncompressed pprof file may be: 1 GiB. A thousandfold more than a minute of a busy
/// machine takes, and little enough that a hostile file cannot exhaust a production machine.
pub const MAX_INFLATED: ByteLen = ByteLen(1 << 30);

/// What gzipped bytes start with.
pub(super) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The uncompressed bytes, at most `limit` of them.
pub(super) fn inflate(bytes: &[u8], limit: ByteLen) -> Result<Cow<'_, [u8]>, PprofError> {
    let fits = |len: usize| u64::try_from(len).is_ok_and(|len| len <= limit.0);
    let plain = if bytes.starts_with(&GZIP_MAGIC) {
        let mut plain = Vec::new();
        // One byte more than allowed shows that there is more.
        let mut reader = MultiGzDecoder::new(bytes).take(limit.0.saturating_add(1));
        reader.read_to_end(&mut plain).map_err(|source| PprofError::Gzip { source })?;
        Cow::Owned(plain)
    } else {
        Cow::Borrowed(bytes)
    };
    if fits(plain.len()) { Ok(plain) } else { Err(PprofError::TooLarge { limit }) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_gzip_bomb_is_refused_at_the_limit() {
        let bomb = gzip(&vec![0; 1 << 20]);
        assert!(bomb.len() < 2000, "{} bytes", bomb.len());
        let exact = inflate(&bomb, ByteLen(1 << 20)).unwrap();
        assert_eq!(exact.len(), 1 << 20);
        let error = inflate(&bomb, ByteLen((1 << 20) - 1)).unwrap_err();
        assert_eq!(error.to_string(), "the file is larger than 1048575 bytes uncompressed");
    }

    #[test]
    fn plain_bytes_are_bounded_too() {
        assert_eq!(inflate(b"abc", ByteLen(3)).unwrap().as_ref(), b"abc");
        assert!(matches!(inflate(b"abcd", ByteLen(3)), Err(PprofError::TooLarge { .. })));
    }

    #[test]
    fn a_cut_gzip_stream_is_an_error_at_every_byte() {
        let whole = gzip(b"a profile of a server");
        for len in 2..whole.len() {
            let result = inflate(&whole[..len], MAX_INFLATED);
            assert!(matches!(result, Err(PprofError::Gzip { .. })), "{len} bytes");
        }
    }
}
