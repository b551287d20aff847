//! Turns a build id into the bytes that a server sends for it, within bounds.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use flame_profile::BuildId;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// How long to wait for a server that does not answer at all, so that the next one gets a chance.
/// Servers that have to take a file out of a package first need seconds.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many bytes are read at a time.
const CHUNK: usize = 64 << 10;

/// A server with the connections to it.
pub(crate) struct Server {
    url: String,
    agent: Agent,
}

impl Server {
    pub(crate) fn new(url: &str) -> Server {
        // The system's certificates, since servers within companies have their own authorities.
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .user_agent(concat!("flame/", env!("CARGO_PKG_VERSION")))
            .build();
        Server { url: url.trim_end_matches('/').to_owned(), agent: Agent::new_with_config(config) }
    }

    /// The name for people.
    pub(crate) fn name(&self) -> &str {
        &self.url
    }

    /// The file of a build id as it comes; `None` when this server does not have it.
    pub(crate) fn open(
        &self,
        id: &BuildId,
        left: Duration,
        max_len: u64,
    ) -> Result<Option<impl Read + use<>>, String> {
        if !self.url.starts_with("http://") && !self.url.starts_with("https://") {
            return Err("not an http: or https: address".to_owned());
        }
        let request = self.agent.get(format!("{}/buildid/{id}/debuginfo", self.url));
        let request = request
            .config()
            .timeout_global(Some(left))
            .timeout_connect(Some(PATIENCE.min(left)))
            .timeout_recv_response(Some(PATIENCE.min(left)))
            .build();
        let response = request.call().map_err(|error| reason(&error))?;
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            status => return Err(format!("it answered with status {status}")),
        }
        let body = response.into_body();
        match body.content_length() {
            Some(len) if len > max_len => Err(too_long(max_len)),
            _ => Ok(Some(body.into_reader())),
        }
    }
}

/// The bounds of one file.
pub(crate) struct Download {
    pub(crate) until: Instant,
    pub(crate) max_len: u64,
}

impl Download {
    /// Copies a body to its end; tells how many bytes came, each time some did, and gives up when the
    /// answer is that nobody waits for more.
    pub(crate) fn copy(
        &self,
        mut from: impl Read,
        to: &mut impl Write,
        came: &dyn Fn(u64) -> bool,
    ) -> Result<(), String> {
        let mut chunk = vec![0; CHUNK];
        let mut total = 0_u64;
        // A server that sends a byte at a time never lets a read time out.
        while Instant::now() < self.until {
            let len = from.read(&mut chunk).map_err(|error| error.to_string())?;
            if len == 0 {
                return Ok(());
            }
            total += len as u64;
            if total > self.max_len {
                return Err(too_long(self.max_len));
            }
            let bytes = chunk.get(..len).unwrap_or_default();
            to.write_all(bytes).map_err(|error| format!("cannot write the cache: {error}"))?;
            if !came(len as u64) {
                return Err("given up".to_owned());
            }
        }
        Err("out of time".to_owned())
    }
}

fn too_long(max_len: u64) -> String {
    format!("the file is larger than {} MB", max_len / 1_000_000)
}

fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        error => error.to_string(),
    }
}
