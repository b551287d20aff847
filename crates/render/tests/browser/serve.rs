//! A web server for one file, with the headers that a test asks for.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Serves a file from a port of its own until the tests end; returns where.
pub(crate) fn serve(content_type: &str, policy: &str, body: &str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let policy = if policy.is_empty() {
        String::new()
    } else {
        format!("Content-Security-Policy: {policy}\r\n")
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         {policy}Connection: close\r\n\r\n{body}"
    );
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A browser that hangs up early is its own affair.
            let _ = respond(stream, answer.as_bytes());
        }
    });
    address
}

fn respond(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    let mut line = String::new();
    let mut request = BufReader::new(stream.try_clone()?);
    while request.read_line(&mut line)? > 0 && !line.trim().is_empty() {
        line.clear();
    }
    stream.write_all(answer)
}
