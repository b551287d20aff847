//! Real mouse and key events, as a user's hand makes them.

use serde_json::json;

use crate::browser::Browser;
use crate::error::Error;

const CONTROL: u32 = 2;

impl Browser {
    /// Moves the mouse to a point of the window, in CSS pixels.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn move_to(&mut self, x: f64, y: f64) -> Result<(), Error> {
        let event = json!({ "type": "mouseMoved", "x": x, "y": y });
        self.call("Input.dispatchMouseEvent", event).map(drop)
    }

    /// Moves the mouse to a point and clicks the left button there.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn click(&mut self, x: f64, y: f64) -> Result<(), Error> {
        self.move_to(x, y)?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Clicks the right button at a point.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn right_click(&mut self, x: f64, y: f64) -> Result<(), Error> {
        self.move_to(x, y)?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "right", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Clicks the left button at a point with the control key held.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn click_control(&mut self, x: f64, y: f64) -> Result<(), Error> {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1,
                "modifiers": CONTROL,
            });
            self.call("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Puts a finger down at a point; from the first time on the page has a touch screen.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn touch_start(&mut self, x: f64, y: f64) -> Result<(), Error> {
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true }))?;
        let event = json!({ "type": "touchStart", "touchPoints": [{ "x": x, "y": y }] });
        self.call("Input.dispatchTouchEvent", event).map(drop)
    }

    /// Lifts the finger.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn touch_end(&mut self) -> Result<(), Error> {
        let event = json!({ "type": "touchEnd", "touchPoints": [] });
        self.call("Input.dispatchTouchEvent", event).map(drop)
    }

    /// Puts a finger down at a point and lifts it.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn tap(&mut self, x: f64, y: f64) -> Result<(), Error> {
        self.touch_start(x, y)?;
        self.touch_end()
    }

    /// Puts the text of the clipboard into whatever has the focus.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn paste(&mut self) -> Result<(), Error> {
        let event = json!({
            "type": "rawKeyDown", "key": "v", "modifiers": CONTROL, "windowsVirtualKeyCode": 86,
            "commands": ["paste"],
        });
        self.call("Input.dispatchKeyEvent", event)?;
        let event = json!({ "type": "keyUp", "key": "v", "modifiers": CONTROL });
        self.call("Input.dispatchKeyEvent", event).map(drop)
    }

    /// Clicks the middle of the first element that a CSS selector finds.
    ///
    /// # Errors
    /// When there is no such element.
    pub fn click_on(&mut self, selector: &str) -> Result<(), Error> {
        let (x, y) = self.middle_of(selector)?;
        self.click(x, y)
    }

    /// Moves the mouse to the middle of the first element that a CSS selector finds.
    ///
    /// # Errors
    /// When there is no such element.
    pub fn hover(&mut self, selector: &str) -> Result<(), Error> {
        let (x, y) = self.middle_of(selector)?;
        self.move_to(x, y)
    }

    fn middle_of(&mut self, selector: &str) -> Result<(f64, f64), Error> {
        let middle = self.eval(&format!(
            "(() => {{ const box = document.querySelector({selector:?}).getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ))?;
        let coordinate = |at: usize| middle[at].as_f64();
        coordinate(0).zip(coordinate(1)).ok_or_else(|| Error::Answer {
            method: selector.to_owned(),
            answer: middle.to_string(),
        })
    }

    /// Presses and releases a key by its DOM name: `Escape`, `Enter`, `F3`, `f`.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn press(&mut self, key: &str) -> Result<(), Error> {
        self.press_with(key, 0)
    }

    /// The same with the control key held.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn press_control(&mut self, key: &str) -> Result<(), Error> {
        self.press_with(key, CONTROL)
    }

    fn press_with(&mut self, key: &str, modifiers: u32) -> Result<(), Error> {
        let code = match key {
            "Escape" => 27,
            "Enter" => 13,
            "F3" => 114,
            "Backspace" => 8,
            "Tab" => 9,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            key => key.bytes().next().map_or(0, |byte| u32::from(byte.to_ascii_uppercase())),
        };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// Types text into whatever has the focus.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn type_text(&mut self, text: &str) -> Result<(), Error> {
        self.call("Input.insertText", json!({ "text": text })).map(drop)
    }
}
