//! Files from a server that the test is itself, on the loopback device: a good one, and bad ones.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::*;

/// What a server answers to a path.
type Answer = fn(&str, &mut TcpStream) -> std::io::Result<()>;

/// A server that lives as long as the test program.
struct TestServer {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    fn start(answer: Answer) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, log) = (stream.unwrap(), Arc::clone(&log));
                thread::spawn(move || {
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    let request = lines.next().unwrap().unwrap();
                    while lines.next().is_some_and(|line| line.is_ok_and(|l| !l.is_empty())) {}
                    let path = request.split(' ').nth(1).unwrap().to_owned();
                    log.lock().unwrap().push(path.clone());
                    // Clients that hang up are what these tests are for.
                    let _ = answer(&path, &mut stream);
                });
            }
        });
        TestServer { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn send(stream: &mut TcpStream, status: &str, body: &[u8]) -> std::io::Result<()> {
    let len = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(body)
}

/// Has the file of every build id that begins with `a`. A file is its build id and some filling.
fn good(path: &str, stream: &mut TcpStream) -> std::io::Result<()> {
    let id = path.strip_prefix("/buildid/").unwrap().strip_suffix("/debuginfo").unwrap();
    match id.starts_with('a') {
        true => send(stream, "200 OK", format!("{id} {}", "x".repeat(100_000)).as_bytes()),
        false => send(stream, "404 Not Found", b"Not Found"),
    }
}

/// Stands for the reader of ELF files: what the file begins with.
fn build_id_of(path: &Path) -> Option<BuildId> {
    let text = fs::read_to_string(path).ok()?;
    let digits = text.split(' ').next()?;
    let bytes = (0..digits.len()).step_by(2);
    let bytes: Option<Vec<u8>> =
        bytes.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect();
    BuildId::from_bytes(&bytes?)
}

fn id(bytes: &[u8]) -> BuildId {
    BuildId::from_bytes(bytes).unwrap()
}

/// A directory of one test, removed at its end.
struct Cache(PathBuf);

impl Cache {
    fn new(test: &str) -> Cache {
        let path = std::env::temp_dir().join(format!("flame-fetch-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Cache(path)
    }

    fn config(&self, servers: &[&TestServer]) -> FetchConfig {
        let servers = servers.iter().map(|server| server.url.clone()).collect();
        let deadline = Duration::from_secs(20);
        FetchConfig { deadline, ..FetchConfig::new(servers, self.0.clone()) }
    }

    /// The files in it, with their lengths.
    fn files(&self) -> Vec<(String, u64)> {
        let mut files = Vec::new();
        for directory in fs::read_dir(&self.0).into_iter().flatten() {
            for file in fs::read_dir(directory.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let name = path.strip_prefix(&self.0).unwrap().display().to_string();
                files.push((name, fs::metadata(&path).unwrap().len()));
            }
        }
        files.sort();
        files
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits for as long as it takes.
struct Patient;

impl Waiting for Patient {
    fn progress(&mut self, _: Progress) {}

    fn is_over(&mut self) -> bool {
        false
    }
}

/// Remembers what it is told.
#[derive(Default)]
struct Seen(Vec<Progress>);

impl Waiting for Seen {
    fn progress(&mut self, progress: Progress) {
        self.0.push(progress);
    }

    fn is_over(&mut self) -> bool {
        false
    }
}

/// Waits until that many bytes have come.
struct UntilBytes {
    wanted: u64,
    came: u64,
}

impl Waiting for UntilBytes {
    fn progress(&mut self, progress: Progress) {
        self.came = progress.bytes;
    }

    fn is_over(&mut self) -> bool {
        self.came >= self.wanted
    }
}

#[track_caller]
fn failed(outcome: &Outcome, server: &TestServer, why: &str) {
    let expect = format!("{}: {why}", server.url.trim_end_matches('/'));
    assert_eq!(*outcome, Outcome::Failed(expect));
}

#[test]
fn files_come_into_the_cache_and_what_is_absent_is_noted() {
    let (cache, server) = (Cache::new("good"), TestServer::start(good));
    let ids = [id(&[0xa1, 2, 3]), id(&[0xb1, 2, 3]), id(&[0xa2, 2, 3])];
    let mut seen = Seen::default();
    let config = cache.config(&[&server]);
    let outcomes = fetch(&ids, &config, build_id_of, &mut seen);
    let path = |id: &str| Outcome::Fetched(cache.0.join(id).join("debuginfo"));
    let expect = [path("a10203"), Outcome::Absent, path("a20203")];
    assert_eq!(outcomes, expect);
    let files = [("a10203/debuginfo", 100_007), ("a20203/debuginfo", 100_007)];
    let mut files: Vec<(String, u64)> = files.map(|(name, len)| (name.to_owned(), len)).into();
    files.push(("b10203/debuginfo".to_owned(), 0));
    assert_eq!(cache.files(), files);
    let steps = seen.0;
    assert_eq!(steps.last(), Some(&Progress { done: 3, files: 3, bytes: 200_014 }));
    assert!(steps.is_sorted_by_key(|step| (step.bytes, step.done)), "{steps:?}");
    assert!(steps.len() >= 5, "each file, and the bytes of two: {steps:?}");

    // A second time nobody is asked.
    assert_eq!(fetch(&ids, &config, build_id_of, &mut Patient), expect);
    let mut asked = server.asked();
    asked.sort();
    let request = |id: &str| format!("/buildid/{id}/debuginfo");
    assert_eq!(asked, ["a10203", "a20203", "b10203"].map(request));

    // A note that is old enough is no longer believed.
    let note = fs::File::options().write(true).open(cache.0.join("b10203/debuginfo")).unwrap();
    note.set_modified(SystemTime::now() - MISS_LIFETIME - Duration::from_secs(1)).unwrap();
    assert_eq!(fetch(&ids, &config, build_id_of, &mut Patient), expect);
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn servers_are_asked_in_their_order() {
    let cache = Cache::new("order");
    let empty = TestServer::start(|_, stream| send(stream, "404 Not Found", b""));
    let broken = TestServer::start(|_, stream| send(stream, "500 Internal Server Error", b""));
    let server = TestServer::start(good);
    let config = cache.config(&[&empty, &broken, &server]);
    let ids = [id(&[0xa1]), id(&[0xb1])];
    let outcomes = fetch(&ids, &config, build_id_of, &mut Patient);
    assert_eq!(outcomes[0], Outcome::Fetched(cache.0.join("a1/debuginfo")));
    // That one server has it not says nothing while another one cannot be asked.
    failed(&outcomes[1], &broken, "it answered with status 500");
    assert_eq!(cache.files().len(), 1);
    assert_eq!(empty.asked().len(), 2);
}

#[test]
fn a_file_of_another_build_is_thrown_away() {
    let cache = Cache::new("wrong");
    let server = TestServer::start(|_, stream| send(stream, "200 OK", b"a2 somebody else's"));
    let outcomes = fetch(&[id(&[0xa1])], &cache.config(&[&server]), build_id_of, &mut Patient);
    failed(&outcomes[0], &server, "it sent a file of another build");
    assert_eq!(cache.files(), []);
}

#[test]
fn a_body_without_end_is_cut_by_the_largest_length() {
    let cache = Cache::new("endless");
    let server = TestServer::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
        loop {
            stream.write_all(&[b'a'; 4096])?;
        }
    });
    let config = FetchConfig { max_len: 3_000_000, ..cache.config(&[&server]) };
    let outcomes = fetch(&[id(&[0xa1])], &config, build_id_of, &mut Patient);
    failed(&outcomes[0], &server, "the file is larger than 3 MB");
    assert_eq!(cache.files(), []);
}

#[test]
fn a_length_beyond_the_largest_is_refused_at_once() {
    let cache = Cache::new("announced");
    let server = TestServer::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99000000000\r\n\r\n")?;
        thread::park_timeout(Duration::from_secs(60));
        Ok(())
    });
    let outcomes = fetch(&[id(&[0xa1])], &cache.config(&[&server]), build_id_of, &mut Patient);
    failed(&outcomes[0], &server, "the file is larger than 2147 MB");
}

#[test]
fn a_body_that_ends_too_early_is_thrown_away() {
    let cache = Cache::new("short");
    let server = TestServer::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na1 short")
    });
    let outcomes = fetch(&[id(&[0xa1])], &cache.config(&[&server]), build_id_of, &mut Patient);
    assert!(matches!(&outcomes[0], Outcome::Failed(_)), "{outcomes:?}");
    assert_eq!(cache.files(), []);
}

/// Two seconds for all of it: a server that never answers, and one that never comes to an end.
#[test]
fn slow_servers_cost_no_more_than_the_deadline() {
    let silent: Answer = |_, _| {
        thread::park_timeout(Duration::from_secs(60));
        Ok(())
    };
    let dripping: Answer = |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")?;
        loop {
            stream.write_all(b"a")?;
            thread::park_timeout(Duration::from_millis(50));
        }
    };
    for (test, answer, why) in
        [("silent", silent, "no answer in time"), ("dripping", dripping, "not there after 2 s")]
    {
        let (cache, server) = (Cache::new(test), TestServer::start(answer));
        let deadline = Duration::from_secs(2);
        let config = FetchConfig { deadline, ..cache.config(&[&server]) };
        let ids: Vec<BuildId> = (0..20).map(|number| id(&[0xa1, number])).collect();
        let started = Instant::now();
        let outcomes = fetch(&ids, &config, build_id_of, &mut Patient);
        assert!(started.elapsed() < Duration::from_secs(10), "{test}: {:?}", started.elapsed());
        failed(&outcomes[0], &server, why);
        failed(&outcomes[19], &server, "not there after 2 s");
        assert_eq!(cache.files(), []);
        assert_eq!(server.asked().len(), 4, "no more than that many at once");
    }
}

#[test]
fn what_is_no_server_is_said_to_be_none() {
    let cache = Cache::new("none");
    let config = FetchConfig::new(vec!["file:///srv".to_owned()], cache.0.clone());
    let outcomes = fetch(&[id(&[0xa1])], &config, build_id_of, &mut Patient);
    let why = "file:///srv: not an http: or https: address";
    assert_eq!(outcomes, [Outcome::Failed(why.to_owned())]);
    // Nobody listens there.
    let url = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let config = FetchConfig::new(vec![url], cache.0.clone());
    let outcomes = fetch(&[id(&[0xa1])], &config, build_id_of, &mut Patient);
    assert!(matches!(&outcomes[0], Outcome::Failed(_)), "{outcomes:?}");
    assert_eq!(fetch(&[], &config, build_id_of, &mut Patient), []);
}

#[test]
fn nobody_waits_for_a_server_that_hangs_once_it_is_over() {
    // Half of a file, and then nothing more.
    let hanging: Answer = |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\na1 half")?;
        thread::park_timeout(Duration::from_secs(60));
        Ok(())
    };
    let silent: Answer = |_, _| {
        thread::park_timeout(Duration::from_secs(60));
        Ok(())
    };
    for (test, answer, wanted) in [("hanging", hanging, 7), ("mute", silent, 0)] {
        let (cache, server) = (Cache::new(test), TestServer::start(answer));
        let config = FetchConfig { deadline: Duration::from_secs(60), ..cache.config(&[&server]) };
        let started = Instant::now();
        let mut waiting = UntilBytes { wanted, came: 0 };
        let outcomes = fetch(&[id(&[0xa1])], &config, build_id_of, &mut waiting);
        assert!(started.elapsed() < Duration::from_secs(30), "{test}: {:?}", started.elapsed());
        assert_eq!(outcomes, [Outcome::GivenUp], "{test}");
        assert_eq!(cache.files(), [], "{test}");
    }
}
