//! nginx with Lua, as it runs in production: pages of a shop, written by LuaJIT inside the server.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::scripts::{self, script, scripted};
use crate::support::{Folded, Scratch, finish, flame, live_as_root, wait_until};

/// Who calls whom in `programs/shop.lua`; what is compiled into a trace is missing, and so are its callers.
const LEGAL: [(&str, &[&str]); 9] = [
    ("<main>", &[]),
    ("page", &["<main>"]),
    ("load", &["page"]),
    ("price", &["load"]),
    ("render", &["page"]),
    ("row", &["render"]),
    ("escape", &["row"]),
    ("by_price", &["page"]),
    ("digest", &["page"]),
];

/// The server, and who asks it for pages.
struct Shop {
    server: Child,
    port: u16,
    _place: Scratch,
}

impl Shop {
    /// Opens one, if the packages are there: `FLAME_NGINX` is where they were unpacked.
    fn open() -> Option<Shop> {
        let Some(packages) = std::env::var_os("FLAME_NGINX").map(PathBuf::from) else {
            let _ = writeln!(std::io::stderr(), "SKIP live: FLAME_NGINX says no place of nginx");
            return None;
        };
        let place = Scratch::new();
        // Whoever takes it in between makes the server fail.
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let here = place.file("");
        let configuration = fs::read_to_string(script("shop.conf")).unwrap();
        let configuration = configuration
            .replace("PACKAGES", packages.to_str().unwrap())
            .replace("PLACE", here.trim_end_matches('/'))
            .replace("PORT", &port.to_string());
        fs::write(place.file("shop.conf"), configuration).unwrap();
        fs::copy(script("shop.lua"), place.file("shop.lua")).unwrap();
        let libraries = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let server = Command::new(packages.join("usr/sbin/nginx"))
            .args(["-p", &here, "-c", &place.file("shop.conf")])
            .env("LD_LIBRARY_PATH", packages.join(libraries))
            .stderr(Stdio::null())
            .spawn();
        let mut shop = Shop { server: server.unwrap(), port, _place: place };
        wait_until("a page of nginx", || {
            assert_eq!(shop.server.try_wait().unwrap(), None, "nginx has ended");
            shop.page().is_some()
        });
        Some(shop)
    }

    /// A page of it.
    fn page(&self) -> Option<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.write_all(b"GET /shop HTTP/1.0\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        page.contains("</ul>").then_some(page)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Records the server while two customers ask for pages.
fn record(shop: &Shop) -> (Folded, String) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let is_over = AtomicBool::new(false);
    let said = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = shop.page();
                }
            });
        }
        let pid = shop.server.id().to_string();
        let mut command = flame();
        command.args(["record", "-F", "999", "-d", "4s", "-p", &pid, "-o", &path]);
        let ended = finish(&mut command);
        is_over.store(true, Ordering::Relaxed);
        ended.success().stderr
    });
    (Folded::parse(&fs::read_to_string(&path).unwrap()), said)
}

/// The function of a frame of the shop; nothing of traces and of functions in C.
fn function(frame: &str) -> Option<&str> {
    let (name, file) = scripted(frame)?;
    let is_shops = file == "shop.lua" || file.starts_with("content_by_lua(");
    (is_shops && name != "[trace]").then_some(name)
}

#[test]
fn pages_that_nginx_has_luajit_write_stand_on_the_server() {
    if !live_as_root() {
        return;
    }
    let Some(shop) = Shop::open() else { return };
    let (folded, said) = record(&shop);
    let in_page = folded.with_any(|frame| function(frame) == Some("page"));
    assert!(in_page >= 200, "{in_page} of {}: {said}", folded.total());
    let is_legal = |caller: Option<&&str>, name: &&str| {
        let callers = LEGAL.iter().find(|(callee, _)| callee == name).map(|(_, callers)| callers);
        // What is not in the table is a function without a name of its own.
        callers.is_none_or(|callers| {
            caller.map_or(callers.is_empty(), |caller| callers.contains(caller))
        })
    };
    scripts::check_chains(&folded, function, is_legal);
    // Each function stands on nginx's own, which called the page.
    for (stack, _) in folded.stacks() {
        let at = |name: &str| stack.iter().position(|frame| frame.contains(name));
        if let Some(page) = stack.iter().position(|frame| function(frame) == Some("page")) {
            let (run, outermost) = (at("ngx_http_lua_run_thread"), at("_start"));
            assert!(outermost < run && run < Some(page) && run.is_some(), "{stack:#?}");
        }
    }
    for (caller, callee) in [("page", "render"), ("render", "row"), ("row", "escape")] {
        let called = scripts::calls(&folded, function, caller, callee);
        assert!(called * 50 > in_page, "{caller} {callee}: {called} of {in_page}: {said}");
    }
    let of_c = |name: &str| folded.with_any(|frame| frame == format!("{name} ([C])_[s]"));
    assert!(of_c("gsub") > 0 && of_c("sort") > 0, "{said}");
}
