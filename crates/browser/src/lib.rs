//! A small driver for Chromium, and for Firefox where what every browser does is looked at, for tests
//! that look at what flame draws. Never part of the product.
//!
//! It speaks the DevTools protocol over a pipe: no port, no server, no other driver. Each
//! [`Browser`] has a context of its own, with nothing in it of those before; its process may have served
//! one before, and ends when no browser is in use. Every wait has a limit.
//!
//! ```no_run
//! let mut browser = flame_browser::Browser::launch(&Default::default())?;
//! browser.navigate("file:///tmp/flame.svg")?;
//! let title = browser.eval("document.querySelector('#title').textContent")?;
//! assert_eq!(title, "Flame Graph");
//! assert_eq!(browser.problems(), [] as [&str; 0]);
//! # Ok::<(), flame_browser::Error>(())
//! ```

mod browser;
mod error;
mod find;
mod firefox;
mod input;
mod pipe;
mod process;
mod shared;

pub use browser::{Browser, Launch};
pub use error::Error;
pub use find::{ENV_BROWSER, ENV_REQUIRE, find_browser, find_or_skip, firefox_or_skip};
pub use firefox::Firefox;
