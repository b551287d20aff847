//! Lines of `perf script` into samples of a sink.
//!
//! Nearly all functions were there before, so what a line stands for is found by its bytes behind the
//! address, which differs from sample to sample; only new ones are taken apart.

use flame_perf_data::is_meant;
use flame_profile::FrameKind;
use memchr::memmem;

use super::asked::{Asked, Left};
use super::columns;
use super::frame::{self, is_frame_line, may_be_frame};
use super::guesses::{Guesses, Known};
use super::header::{self, Event, Header, LastTask};
use super::inlined::Before;
use super::keys::{is_around_offset, key, key_behind_address};
use super::layout::{Layout, RECORD, is_record};
use super::meaning::{
    GROUPS, INSTRUCTION, NOTHING, SILENT, is_aside, is_source_line, make_frames, stop_at,
    without_asides,
};
use super::usual::{self, LastHeader, UsualHeader};
use super::{first_line, is_aligned_frame, looks_like_frame};
use crate::ReadError;
use crate::blocks::MAX_LINE;
use crate::line_cache::{LineCache, LineKey};
use crate::names::{number, without_arguments};
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex, TaskName};
use crate::skipped::Place;

/// What perf says when it has lost events.
const LOST: &[u8] = b"PERF_RECORD_LOST";

/// Reads blocks of whole samples.
pub(super) struct Parser<'s> {
    sink: &'s mut Sink,
    asked: &'s Asked,
    left: &'s mut Left,
    /// What lines of stacks have behind their address, or whole lines where addresses are names: what they
    /// stand for, a frame or a group of them.
    lines: LineCache,
    /// The frames of lines that are several, innermost first.
    groups: Vec<Vec<FrameIndex>>,
    /// For each frame whether callers are left out from it on.
    stops: Vec<bool>,
    guesses: Guesses,
    /// What the line before stood for.
    last: u32,
    /// What stood before the next line of a stack, if that matters.
    before: Option<Before>,
    /// Names and numbers of threads.
    tasks: LineCache,
    last_task: LastTask,
    last_header: LastHeader,
    /// Innermost first.
    stack: Vec<FrameIndex>,
    /// What samples are given to where they are not weights by themselves.
    taker: Option<Taker<'s>>,
}

/// Takes the events of a text with their stacks, outermost first.
pub(crate) type Taker<'t> = &'t mut dyn FnMut(&mut Sink, &Event<'_>, &[FrameIndex]);

/// A line, and where it stands.
struct Here<'b> {
    line: &'b [u8],
    /// The line with its end.
    with_end: &'b [u8],
    /// What stands behind it in the block.
    next: &'b [u8],
    /// Counted from 1.
    number: u64,
}

/// The sample whose stack is being read.
#[derive(Clone, Copy)]
enum State<'b> {
    /// Between samples.
    Outside,
    /// In a sample that is taken.
    Taken(Header<'b>, Option<TaskIndex>),
    /// In one that is not, or whose other frames are not.
    LeftOut,
}

impl<'s> Parser<'s> {
    pub(super) fn new(sink: &'s mut Sink, asked: &'s Asked, left: &'s mut Left) -> Parser<'s> {
        let before = sink.options().inlined.then(Before::default);
        Parser {
            sink,
            asked,
            left,
            lines: LineCache::default(),
            groups: Vec::new(),
            stops: Vec::new(),
            guesses: Guesses::default(),
            last: NOTHING,
            before,
            tasks: LineCache::default(),
            last_task: LastTask::default(),
            last_header: LastHeader::default(),
            stack: Vec::new(),
            taker: None,
        }
    }

    /// Gives all samples to `taker`.
    pub(super) fn with_taker(mut self, taker: Taker<'s>) -> Parser<'s> {
        self.taker = Some(taker);
        self
    }

    /// Reads a block that so many lines stand before. Returns how many stand before the next one.
    pub(super) fn read(&mut self, block: &[u8], lines: u64) -> Result<u64, ReadError> {
        let mut state = State::Outside;
        let mut number = lines;
        let mut rest = block;
        let mut stopped = false;
        while !rest.is_empty() {
            number += 1;
            if let Some(len) = self.read_usual(rest, &mut state, &mut stopped) {
                rest = &rest[len..];
                continue;
            }
            let line = first_line(rest);
            let (with_end, next) = rest.split_at(rest.len().min(line.len() + 1));
            self.read_line(&Here { line, with_end, next, number }, &mut state, &mut stopped)?;
            rest = next;
        }
        self.end(&mut state);
        Ok(number)
    }

    /// Reads any line.
    fn read_line<'b>(
        &mut self,
        here: &Here<'b>,
        state: &mut State<'b>,
        stopped: &mut bool,
    ) -> Result<(), ReadError> {
        let line = here.line;
        let text = line.trim_ascii();
        // perf prints an instruction last, and no empty line behind it.
        if text.is_empty() || text.starts_with(INSTRUCTION) {
            self.end(state);
            return Ok(());
        }
        if line.len() > MAX_LINE && line[0] != b'#' {
            self.sink.skip(Place::Line(here.number), "it is longer than a line may be", line)?;
            return Ok(());
        }
        // What was a frame before is one again, wherever it is indented; the only frame of a sample looks like one.
        let may_be_known = matches!(line[0], b' ' | b'\t') && !*stopped && !self.is_one_line(line);
        if let (true, State::Taken(..)) = (may_be_known, *state)
            && let Some(stops) = self.push_known(text)
        {
            *stopped = stops;
            return Ok(());
        }
        let is_frame = !matches!(state, State::Outside) && is_frame_line(line);
        if !is_frame && (line[0] == b'#' || is_aside(text)) {
            return Ok(());
        }
        if self.begins(here, is_frame, state, stopped)? {
            return Ok(());
        }
        // perf 6.1 says behind the place what it says behind the function where no place is printed.
        let place = text.strip_suffix(b" (inlined)").filter(|place| is_source_line(place));
        if let (State::Taken(..), Some(place), false) = (&*state, place, *stopped) {
            self.add_inlined_place(place);
            return Ok(());
        }
        match state {
            State::Taken(..) if *stopped => {}
            State::Taken(..) if self.sink.options().source_lines && is_source_line(text) => {
                self.add_source_line(text);
            }
            State::Taken(..) => *stopped = self.frame(here)?,
            State::LeftOut if is_frame || line[0].is_ascii_whitespace() => {}
            State::LeftOut | State::Outside => {
                self.sink.skip(
                    Place::Line(here.number),
                    "it is neither a sample nor a frame",
                    line,
                )?;
            }
        }
        Ok(())
    }

    /// Whether a line is a sample of one line by its columns.
    fn is_one_line(&self, line: &[u8]) -> bool {
        matches!(self.asked.layout, Layout::Columns(_)) && columns::has_address(line)
    }

    /// Whether a line begins a sample, which is begun then.
    fn begins<'b>(
        &mut self,
        here: &Here<'b>,
        is_frame: bool,
        state: &mut State<'b>,
        stopped: &mut bool,
    ) -> Result<bool, ReadError> {
        let fields = match self.asked.layout {
            Layout::Columns(fields) => fields,
            Layout::Words(_) if is_frame => return Ok(false),
            Layout::Words(needs) => {
                let header = header::parse_next(here.line, &mut self.last_task);
                let Some(header) = header.filter(|header| needs.are_met(header, here.next)) else {
                    return Ok(false);
                };
                self.end(state);
                *stopped = false;
                *state = self.begin(header, stopped);
                self.keep_header(state, here.with_end);
                // Of another event it is left out before that: tracepoints are printed without a period.
                if let State::Taken(Header { period: None, .. }, _) = state
                    && self.asked.has_period
                {
                    *state = State::LeftOut;
                    self.left.taken -= 1;
                    let reason = "it has no period, and most samples have one";
                    self.sink.skip(Place::Line(here.number), reason, here.line)?;
                }
                if let State::Taken(Header { period: Some(_), .. }, _) = state {
                    self.left.first_period.get_or_insert(here.number);
                }
                return Ok(true);
            }
        };
        let line = here.line.strip_suffix(b"\r").unwrap_or(here.line);
        if let Some((header, frame)) = columns::sample_of_one_line(line, fields) {
            self.end(state);
            *stopped = false;
            *state = self.begin(header, stopped);
            if let State::Taken(..) = state {
                *stopped = self.push_line(without_asides(frame)).unwrap_or(false);
            }
            return Ok(true);
        }
        let State::Outside = state else { return Ok(false) };
        *stopped = false;
        if fields.are_none() && is_aligned_frame(line) {
            *state = self.begin(Header::default(), stopped);
            *stopped = self.push_line(line.trim_ascii()).unwrap_or(false);
            return Ok(true);
        }
        match columns::above_stack(line, here.next, fields) {
            Some(header) => *state = self.begin(header, stopped),
            None if memmem::find(line, RECORD).is_some() => *state = State::LeftOut,
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Reads a line that looks as most do and stands for what is known: how long it is.
    #[inline]
    fn read_usual<'b>(
        &mut self,
        text: &'b [u8],
        state: &mut State<'b>,
        stopped: &mut bool,
    ) -> Option<usize> {
        match state {
            State::Outside => {
                let UsualHeader { cpu, time, period, len, .. } = self.last_header.next(text)?;
                let (time, period) = (Some(time), Some(period));
                let header = Header { cpu, time, period, ..Header::default() };
                *state = State::Taken(header, self.last_header.task);
                self.left.taken += 1;
                *stopped = false;
                Some(len)
            }
            State::Taken(..) if text[0] == b'\n' => {
                self.end(state);
                Some(1)
            }
            State::Taken(..) if !*stopped && !self.is_by_address() => {
                let behind = usual::behind_address(text)?;
                let Known { value, len } = self.known_behind_address(behind)?;
                *stopped = self.push(value)?;
                Some(usual::ADDRESS + len)
            }
            _ => None,
        }
    }

    /// Whether lines of one function stand for different frames.
    fn is_by_address(&self) -> bool {
        self.before.is_some() || self.sink.options().addresses
    }

    /// What stands behind an address and was there before.
    #[inline]
    fn known_behind_address(&mut self, text: &[u8]) -> Option<Known> {
        if let Some(known) = self.guesses.by_callee(self.last, text) {
            return Some(known);
        }
        let known = match self.guesses.by_symbol(text) {
            Some(known) => known,
            None => {
                let line = usual::frame(text)?;
                let key = key_behind_address(line);
                let value = self.lines.find(key)?;
                if let LineKey::Around(symbol, module) = key {
                    self.guesses.keep_symbol(symbol, module, value);
                }
                Known { value, len: line.len() + 1 }
            }
        };
        self.guesses.keep_caller(self.last, &text[..known.len], known.value);
        Some(known)
    }

    /// Keeps the header of a sample that is taken, with the end of its line, for the next one.
    fn keep_header(&mut self, state: &State<'_>, line: &[u8]) {
        match state {
            State::Taken(header, task) if self.taker.is_none() => {
                self.last_header.keep(line, self.last_task.start(), header, *task);
            }
            _ => self.last_header = LastHeader::default(),
        }
    }

    /// Starts a sample.
    fn begin<'b>(&mut self, header: Header<'b>, stopped: &mut bool) -> State<'b> {
        let event = header.event;
        if is_record(&header) {
            if [event, header.rest].iter().any(|text| text.starts_with(LOST)) {
                let words = header.rest.split(|byte| *byte == b' ');
                self.left.lost += words.filter_map(number::<u64>).next().unwrap_or(0);
            }
            return State::LeftOut;
        }
        if !self.asked.event.is_empty() && !event.is_empty() && !is_meant(&self.asked.event, event)
        {
            match self.left.events.get_mut(event) {
                Some(count) => *count += 1,
                None => drop(self.left.events.insert(event.to_vec(), 1)),
            }
            return State::LeftOut;
        }
        self.left.taken += 1;
        self.stack.clear();
        let task = (!header.comm.is_empty()).then(|| self.task(&header));
        if looks_like_frame(header.rest) && header.rest.contains(&b' ') {
            *stopped = self.push_line(without_asides(header.rest)).unwrap_or(false);
        }
        State::Taken(header, task)
    }

    fn task(&mut self, header: &Header<'_>) -> TaskIndex {
        let sink = &mut *self.sink;
        let make = || {
            // As the collapsing scripts write it.
            let name: Vec<u8> =
                header.comm.iter().map(|byte| if *byte == b' ' { b'_' } else { *byte }).collect();
            let (pid, tid) = (header.pid, header.tid);
            sink.task(TaskName { name: &name, process: None, pid, tid }).0
        };
        TaskIndex(self.tasks.get_or(LineKey::Whole(header.task), make))
    }

    /// Reads a line of a stack. True when the others of it are left out.
    fn frame(&mut self, here: &Here<'_>) -> Result<bool, ReadError> {
        let text = here.line.trim_ascii();
        let is_frame = !self.asked.is_aligned || may_be_frame(here.line);
        match is_frame.then(|| self.push_line(text)).flatten() {
            Some(stops) => Ok(stops),
            None => {
                self.sink.skip(Place::Line(here.number), "it is not a frame of a stack", text)?;
                Ok(false)
            }
        }
    }

    /// Gives the innermost function of the line before its place: `main.c:12`.
    fn add_source_line(&mut self, text: &[u8]) {
        // Where several were inlined, perf says the place of none; `:0` is none.
        if let Some(frame) = self.stack.last_mut().filter(|_| !text.starts_with(b":")) {
            *frame = self.sink.frame_at(*frame, text);
        }
    }

    /// The function of the line before was inlined, at this place.
    fn add_inlined_place(&mut self, place: &[u8]) {
        if let Some(frame) = self.stack.last_mut() {
            *frame = self.sink.frame_of_kind(*frame, FrameKind::Inlined);
        }
        if self.sink.options().source_lines {
            self.add_source_line(place);
        }
    }

    /// Puts the frames of a line on the stack: whether they are the last; `None` for no frame.
    fn push_line(&mut self, text: &[u8]) -> Option<bool> {
        if let Some(before) = self.before {
            return self.push_to_look_up(text, before);
        }
        let (sink, groups, stops) = (&mut *self.sink, &mut self.groups, &mut self.stops);
        let value = match key(text, sink.options().addresses) {
            Some(key) => {
                let key = if is_around_offset(key, text) { key } else { LineKey::Whole(text) };
                self.lines.get_or(key, || make_frames(text, sink, groups, stops))
            }
            None => make_frames(text, sink, groups, stops),
        };
        self.push(value)
    }

    /// The same where inlined functions are looked up.
    fn push_to_look_up(&mut self, text: &[u8], before: Before) -> Option<bool> {
        let (sink, groups, stops) = (&mut *self.sink, &mut self.groups, &mut self.stops);
        let line = frame::parse(text);
        let key = LineKey::Around(before.key(), text);
        let value = self.lines.get_or(key, || {
            let kept = line.and_then(|line| Some((before.keep(&line)?, line.symbol)));
            match kept {
                Some((name, symbol)) => {
                    let frame = sink.frame(&name, FrameKind::User);
                    stop_at(
                        frame,
                        sink.options()
                            .skip_after
                            .iter()
                            .any(|name| name.as_bytes() == without_arguments(symbol)),
                        stops,
                    );
                    frame.0
                }
                None => make_frames(text, sink, groups, stops),
            }
        });
        if let Some(line) = line {
            self.before = Some(Before::behind(line.kind()));
        }
        self.push(value)
    }

    /// The same for a line that was there before; `None` for one that was not.
    fn push_known(&mut self, text: &[u8]) -> Option<bool> {
        if self.before.is_some() {
            return None;
        }
        let value = self.lines.find(key(text, self.sink.options().addresses)?)?;
        self.push(value)
    }

    /// Puts what a line stands for on the stack.
    fn push(&mut self, value: u32) -> Option<bool> {
        self.last = value;
        match value {
            NOTHING => None,
            SILENT => Some(false),
            group if group >= GROUPS => {
                let group = &self.groups[(group - GROUPS) as usize];
                for frame in group {
                    self.stack.push(*frame);
                    if self.stops.get(frame.0 as usize) == Some(&true) {
                        return Some(true);
                    }
                }
                Some(false)
            }
            frame => {
                self.stack.push(FrameIndex(frame));
                Some(!self.stops.is_empty() && self.stops.get(frame as usize) == Some(&true))
            }
        }
    }

    /// Adds the sample that ends.
    fn end(&mut self, state: &mut State<'_>) {
        let State::Taken(header, task) = std::mem::replace(state, State::Outside) else { return };
        self.last = NOTHING;
        self.before = self.before.map(|_| Before::default());
        self.left.periods += u64::from(header.period.is_some());
        // A period of 0 is that of a sample all the same.
        let period = header.period.filter(|period| *period > 0).unwrap_or(1);
        let weights = [period, 1];
        let weights = if self.asked.has_period { &weights[..] } else { &weights[1..] };
        let stops = |frame: &FrameIndex| self.stops.get(frame.0 as usize) == Some(&true);
        let is_stopped = !self.stops.is_empty() && self.stack.last().is_some_and(stops);
        self.stack.reverse();
        let (time, cpu) = (header.time, header.cpu);
        let task = task.filter(|_| !is_stopped);
        if let Some(taker) = &mut self.taker {
            let Header { event: name, rest: arguments, tid, .. } = header;
            let event = Event { name, arguments, task, tid, time, cpu };
            taker(self.sink, &event, &self.stack);
            self.stack.clear();
            return;
        }
        self.sink.add(&Sample { stack: &self.stack, weights, task, time, cpu });
        self.stack.clear();
    }
}
