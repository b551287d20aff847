//! The picture options as typed into what the tree and the SVG are made with.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use flame_message::clean_name;
use flame_profile::{CallTree, SiblingOrder, TooLarge, ValueType, Weight};
use flame_render::{
    ColourConfig, Direction, NameAttributes, Palette, Shorten, SvgConfig, TerminalConfig,
    Variation, name_colours,
};

use flame_sampler::Credentials;

use super::filters::Filters;
use super::palette::PaletteFile;
use crate::cli::{PictureArgs, Width};
use crate::inputs::shown_path as shown;
use crate::message::{Failure, reason};
use crate::sudo;
use crate::terminal::{self, Color};

/// What pictures look like, validated, with the files that say so read.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) args: PictureArgs,
    config: SvgConfig,
    /// The file of consistent colours.
    pub(super) palette: Option<PaletteFile>,
    filters: Filters,
    /// What could not be used of the files.
    pub(super) complaints: Vec<String>,
}

impl Picture {
    pub(super) fn prepare(args: &PictureArgs, color: Color) -> Result<Picture, Failure> {
        let mut complaints = Vec::new();
        let palette = args.cp.as_deref().map(|path| PaletteFile::read(path, &mut complaints));
        let palette = palette.transpose()?;
        let mut config = svg_config(args, color, &mut complaints)?;
        if let Some(palette) = &palette {
            config.colours.known = palette.colours.clone();
        }
        let filters = Filters::prepare(&args.filters)?;
        Ok(Picture { args: args.clone(), config, palette, filters, complaints })
    }

    pub(super) fn order(&self) -> SiblingOrder {
        match (self.args.flamechart, self.args.no_sort) {
            (true, _) => SiblingOrder::Time,
            (_, true) => SiblingOrder::First,
            _ => SiblingOrder::Name,
        }
    }

    /// Whether trees are shown otherwise than they are.
    pub(super) fn shapes(&self) -> bool {
        let PictureArgs { base, reverse, callers, total, factor, .. } = &self.args;
        !self.filters.is_empty()
            || !base.is_empty()
            || *reverse
            || callers.is_some()
            || total.is_some()
            || factor.is_some()
    }

    /// What a tree is asked for and does not have.
    pub(super) fn missing(&self, tree: &CallTree) -> Option<Failure> {
        let asked: Vec<&str> = {
            let PictureArgs { base, callers, around, .. } = &self.args;
            base.iter().chain(callers).chain(around).map(String::as_str).collect()
        };
        let has = |name: &&str| tree.labels().iter().any(|label| label.is_called(name));
        if asked.is_empty() || asked.iter().any(has) {
            return None;
        }
        let what = format!("no function {} in this profile", clean_name(&asked.join(" or ")));
        Some(Failure::new(what).or_try("--flat --format txt, to see the names"))
    }

    /// Cuts, turns, scales and widens the tree. Also says what was not done, and what is lost by it.
    pub(super) fn shape(&self, mut tree: CallTree) -> Result<(CallTree, Vec<String>), Failure> {
        let mut complaints = Vec::new();
        if !self.filters.is_empty() {
            let (left, complaint) = self.filters.apply(&tree, self.order());
            if left.nodes().len() == 1 && tree.nodes().len() > 1 {
                return Err(Failure::new("no stack is left by the filters").or_why(
                    complaint.unwrap_or_else(|| "none is one that they ask for".to_owned()),
                ));
            }
            complaints.extend(complaint);
            tree = left;
        }
        if !self.args.base.is_empty() {
            tree = tree.from_bases(&self.args.base, self.order());
        }
        if self.args.reverse {
            tree = tree.reversed(self.order());
        }
        if let Some(name) = &self.args.callers {
            tree = tree.callers(name, self.order());
        }
        if let Some(total) = self.args.total {
            let unit = 10_u64.saturating_pow(tree.decimals());
            if !tree.widen(Weight(total.saturating_mul(unit))) {
                let weighs = tree.total().0.div_ceil(unit);
                complaints.push(format!("--total {total} is left out: the samples weigh {weighs}"));
            }
        }
        if let Some(factor) = self.args.factor {
            let scaled = tree.scale(factor.digits, factor.decimals);
            scaled.map_err(|error: TooLarge| {
                Failure::usage("--factor is too large").why(error.to_string())
            })?;
        }
        Ok((tree, complaints))
    }

    /// How an SVG looks; `title` is what is known of the profile.
    pub(super) fn svg(
        &self,
        title: Option<&str>,
        footer: &[String],
        value: Option<&ValueType>,
    ) -> SvgConfig {
        let mut config = self.config.clone();
        if let Some(value) = value {
            config.colours.palette = self.palette_of(value);
        }
        if let (None, Some(title)) = (&self.args.title, title) {
            config.title = title.to_owned();
        }
        if !self.args.no_metadata {
            config.footer = footer.to_vec();
        }
        config
    }

    /// The palette that was asked for; else that of the value.
    fn palette_of(&self, value: &ValueType) -> Palette {
        let chosen = self.config.colours.palette;
        let is_asked_for = self.args.colors.is_some() || chosen != Palette::default();
        if is_asked_for { chosen } else { Palette::of_value(value) }
    }

    /// How a terminal shows a tree.
    pub(super) fn terminal(
        &self,
        title: Option<&str>,
        color: Color,
        value: &ValueType,
    ) -> TerminalConfig {
        let palette = self.palette_of(value);
        TerminalConfig {
            title: self.args.title.clone().or_else(|| title.map(str::to_owned)),
            columns: terminal::columns_of_stdout(),
            depth: color.depth_of_stdout(),
            colours: ColourConfig { palette, ..self.config.colours.clone() },
            direction: self.config.direction,
            all_rows: self.config.all_rows,
            count_name: self.args.countname.clone(),
        }
    }

    /// Adds the colours of a tree's names to the file of consistent colours, where there is one.
    pub(super) fn keep_colours(&self, tree: &CallTree) -> Result<(), Failure> {
        match self.palette.as_ref().filter(|_| tree.before().is_none()) {
            Some(palette) => palette.keep(name_colours(tree, &self.config.colours)),
            None => Ok(()),
        }
    }
}

/// What was chosen of the profile: 100 % in the picture are not all of it then, and whoever looks at a
/// screenshot cannot tell.
fn left_out(args: &PictureArgs) -> Option<String> {
    let filters = &args.filters;
    let lists = [
        ("only stacks with", &filters.grep),
        ("no stacks with", &filters.exclude),
        ("hidden:", &filters.hide),
        ("only below", &args.base),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let mut parts: Vec<String> =
        lists.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
    parts.extend(filters.trim_root.map(|frames| format!("{frames} outer frames left out")));
    parts.extend(filters.min_weight.map(|least| format!("only stacks of {least} or more")));
    (!parts.is_empty()).then(|| format!("Part of the profile: {}", parts.join("; ")))
}

fn svg_config(
    args: &PictureArgs,
    color: Color,
    complaints: &mut Vec<String>,
) -> Result<SvgConfig, Failure> {
    let default = SvgConfig::default();
    let (width, fluid) = match args.width {
        Some(Width::Pixels(pixels)) => (pixels, false),
        Some(Width::Fluid) | None => (default.width, true),
    };
    Ok(SvgConfig {
        title: args.title.clone().unwrap_or_else(|| default_title(args).to_owned()),
        subtitle: args.subtitle.clone().or_else(|| left_out(args)),
        width,
        fluid,
        row_height: args.height.unwrap_or(default.row_height),
        min_width: args.minwidth.unwrap_or(default.min_width),
        all_rows: args.all_rows,
        fonts: args.fonttype.clone().unwrap_or(default.fonts),
        font_size: args.fontsize.unwrap_or(default.font_size),
        font_width: args.fontwidth.or_else(|| fixed_width(args.fonttype.as_deref()?)),
        count_name: args.countname.clone(),
        name_type: args.nametype.clone().unwrap_or(default.name_type),
        direction: if args.inverted { Direction::Down } else { Direction::Up },
        shorten: if args.truncate_text_right { Shorten::Right } else { Shorten::UsefulEnd },
        colours: colour_config(args, color),
        search_colour: args.search_color.unwrap_or(default.search_colour),
        ui_colour: args.uicolor,
        stroke_colour: args.stroke_color.and_then(|stroke| stroke.0),
        around: args.around.clone(),
        notes: args.notes.clone(),
        attributes: attributes(args.nameattr.as_deref(), complaints)?,
        script: !args.no_javascript,
        pretty: args.pretty_xml,
        footer: Vec::new(),
    })
}

/// The width of each character of fonts that have one, in thousandths of the font's size: the table
/// of widths is that of fonts that have many.
fn fixed_width(fonts: &str) -> Option<u32> {
    let first = fonts.split(',').next().unwrap_or_default().to_lowercase();
    ["mono", "courier", "consol", "menlo", "terminal", "typewriter"]
        .iter()
        .any(|name| first.contains(name))
        .then_some(610)
}

fn default_title(args: &PictureArgs) -> &'static str {
    match (args.flamechart, args.inverted) {
        (true, _) => "Flame Chart",
        (_, true) => "Icicle Graph",
        _ => flame_render::DEFAULT_TITLE,
    }
}

fn colour_config(args: &PictureArgs, color: Color) -> ColourConfig {
    let seed =
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let variation = match (args.hash, args.random) {
        (true, _) => Variation::Prefix,
        (_, true) => Variation::Random(seed()),
        _ => Variation::Name,
    };
    ColourConfig {
        palette: args.colors.or(color.palette()).unwrap_or_default(),
        variation,
        known: BTreeMap::new(),
        by_width: args.colordiffusion,
        delta: args.colors_diff.unwrap_or_default(),
        negate: args.negate,
        background: args.bgcolors,
    }
}

fn attributes(
    path: Option<&Path>,
    complaints: &mut Vec<String>,
) -> Result<NameAttributes, Failure> {
    let Some(path) = path else { return Ok(NameAttributes::default()) };
    let text = sudo::own_files().read(path).map_err(|error| cannot("read", path, &error))?;
    let (attributes, found) = NameAttributes::parse(&String::from_utf8_lossy(&text));
    complaints.extend(found.iter().map(|what| format!("{}, {}", shown(path), clean_name(what))));
    Ok(attributes)
}

pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {}", shown(path), reason(error)))
}

/// Shows a picture in the user's browser, which goes on without flame.
pub(super) fn open_in_browser(path: &Path) -> Result<(), Failure> {
    // Whatever starts with a dash or looks like an address is a path all the same.
    let file = std::path::absolute(path).map_err(|error| cannot("open", path, &error))?;
    let named = std::env::var("BROWSER").unwrap_or_default();
    let usual = ["xdg-open", "wslview", "open"];
    for command in named.split(':').chain(usual) {
        if browser(command, &file).is_some_and(|mut browser| browser.spawn().is_ok()) {
            return Ok(());
        }
    }
    Err(Failure::new(format!("cannot open {}: no browser was found", shown(path)))
        .why("neither $BROWSER nor xdg-open can be started")
        .or_try(format!("firefox {}", shown(path))))
}

/// A command of `$BROWSER`, which may have options and say `%s` where the file is to stand.
fn browser(command: &str, file: &Path) -> Option<Command> {
    let mut words = command.split_ascii_whitespace();
    let mut browser = Command::new(words.next()?);
    let mut is_named = false;
    for word in words {
        is_named |= word == "%s";
        browser.arg(if word == "%s" { file.as_os_str() } else { OsStr::new(word) });
    }
    if !is_named {
        browser.arg(file);
    }
    browser.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(user) = sudo::invoking_user() {
        run_as(&mut browser, &user);
    }
    Some(browser)
}

/// Under sudo the browser is that of the caller: as root it would show pages with all rights, if it
/// started at all, and on nobody's desktop.
fn run_as(browser: &mut Command, user: &Credentials) {
    browser.uid(user.uid).gid(user.gid);
    for (name, value) in &user.environment {
        match value {
            Some(value) => browser.env(name, value),
            None => browser.env_remove(name),
        };
    }
    let session = Path::new("/run/user").join(user.uid.to_string());
    if session.is_dir() {
        browser.env("XDG_RUNTIME_DIR", session);
    }
}
