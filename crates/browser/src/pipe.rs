//! Commands and events over the debugging pipe: JSON texts, each ended by a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::Error;

/// Both directions of the pipe. Answers are awaited; events met on the way are kept.
#[derive(Debug)]
pub(crate) struct Pipe {
    input: ChildStdin,
    messages: Receiver<Value>,
    events: Vec<Value>,
    next_id: u64,
    limit: Duration,
}

impl Pipe {
    pub(crate) fn new(input: ChildStdin, output: ChildStdout, limit: Duration) -> Pipe {
        let (sender, messages) = mpsc::channel();
        // Ends when the browser closes its end, or when nobody listens any more.
        std::thread::spawn(move || {
            let texts = BufReader::new(output).split(0).map_while(Result::ok);
            for text in texts {
                let message = serde_json::from_slice(&text).unwrap_or(Value::Null);
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Pipe { input, messages, events: Vec::new(), next_id: 1, limit }
    }

    /// Waits so long at most from now on, for nothing that came before.
    pub(crate) fn start_anew(&mut self, limit: Duration) {
        self.take_events();
        self.limit = limit;
    }

    /// Sends a command and waits for its result.
    pub(crate) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, Error> {
        let id = self.next_id;
        self.next_id += 1;
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            command["sessionId"] = json!(session);
        }
        let mut text = command.to_string().into_bytes();
        text.push(0);
        let gone = |_| Error::Gone { waiting_for: method.to_owned() };
        self.input.write_all(&text).map_err(gone)?;
        self.input.flush().map_err(gone)?;
        let mut answer = self.wait(method, |message| message["id"] == id)?;
        if let Some(message) = answer["error"]["message"].as_str() {
            let (method, message) = (method.to_owned(), message.to_owned());
            return Err(Error::Refused { method, message });
        }
        Ok(answer["result"].take())
    }

    /// Waits for an event of that method, taking one that came already.
    pub(crate) fn wait_for_event(&mut self, method: &str) -> Result<Value, Error> {
        if let Some(at) = self.events.iter().position(|event| event["method"] == method) {
            return Ok(self.events.remove(at));
        }
        self.wait(method, |message| message["method"] == method)
    }

    /// The events so far, oldest first; they are forgotten here.
    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        self.events.extend(self.messages.try_iter());
        std::mem::take(&mut self.events)
    }

    fn wait(&mut self, waiting_for: &str, is_it: impl Fn(&Value) -> bool) -> Result<Value, Error> {
        let deadline = Instant::now() + self.limit;
        let waiting_for = waiting_for.to_owned();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(message) if is_it(&message) => return Ok(message),
                Ok(message) => self.events.push(message),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::Timeout { waiting_for, limit: self.limit });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Gone { waiting_for }),
            }
        }
    }
}
