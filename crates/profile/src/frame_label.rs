//! What a frame is called in pictures and folded text: its name, with the source line if wanted.

use std::borrow::Cow;

use crate::frame::{Frame, FrameKind};
use crate::profile::Profile;

impl Profile {
    /// The name of a frame; with `lines` and where its file is known, `name (file.c:123)`, or
    /// `name (file.c)` for code that stands for no line.
    ///
    /// The file is named without its directories, as it would be on a map: those tell apart files
    /// of one name, but fill a box before the name of the function is readable. The line is the one
    /// where the frame is: of the call for all but the innermost. A blank and a parenthesis before
    /// digits keep folded text readable to tools that look for the count at the end of a line.
    ///
    /// ```
    /// use flame_profile::{Frame, FrameKind, Profile, ValueType};
    ///
    /// let mut profile = Profile::new(vec![ValueType::samples()]);
    /// let name = profile.intern("parse");
    /// let file = Some(profile.intern("/build/src/parser.c"));
    /// let frame = Frame { name, kind: FrameKind::User, file, line: Some(123) };
    /// assert_eq!(profile.frame_label(frame, true), "parse (parser.c:123)");
    /// assert_eq!(profile.frame_label(frame, false), "parse");
    /// ```
    pub fn frame_label(&self, frame: Frame, lines: bool) -> Cow<'_, str> {
        let name = match (self.text(frame.name), frame.kind) {
            // It says already where the function is defined.
            (name, FrameKind::Script) if lines && frame.file.is_some() => {
                name.rsplit_once(" (").map_or(name, |(name, _)| name)
            }
            (name, _) => name,
        };
        let file = frame.file.filter(|_| lines).map(|file| self.text(file));
        let Some(file) = file.and_then(|path| path.rsplit('/').next()) else {
            return Cow::Borrowed(name);
        };
        match frame.line {
            Some(line) => Cow::Owned(format!("{name} ({file}:{line})")),
            None => Cow::Owned(format!("{name} ({file})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::ValueType;

    #[test]
    fn a_line_replaces_where_a_script_says_that_its_function_is() {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let name = profile.intern("parse (/srv/app.py:3)");
        let file = Some(profile.intern("/srv/app.py"));
        let frame = |kind, file| Frame { name, kind, file, line: Some(9) };
        let check = |kind, file, lines, expect: &str| {
            assert_eq!(profile.frame_label(frame(kind, file), lines), expect);
        };
        check(FrameKind::Script, file, true, "parse (app.py:9)");
        check(FrameKind::Script, file, false, "parse (/srv/app.py:3)");
        check(FrameKind::Script, None, true, "parse (/srv/app.py:3)");
        check(FrameKind::Jit, file, true, "parse (/srv/app.py:3) (app.py:9)");
    }
}
