//! Which share of what is shown stands on something that is not as it should be.

use flame_message::Paint;
use flame_profile::{CallTree, Evidence, Health, Profile, Weight, functions};

use super::percent;

/// How much of what is shown is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shares {
    /// By self weight, in frames without a name: `[libfoo.so+0x12]`.
    pub(super) unnamed: f64,
    /// Below `[truncated stack]`.
    pub(super) truncated: f64,
    /// In stacks with guessed frames.
    pub(super) guessed: f64,
}

impl Shares {
    /// What stands on few stacks, which may stand for much of the time; `complete` is the share of those that are.
    pub(super) fn of_few_stacks(self, health: &Health, complete: f64, paint: Paint) -> Vec<String> {
        let guessed = health.guessed_share().unwrap_or(0.0);
        let both = [
            (self.truncated, 1.0 - complete, "is below [truncated stack]"),
            (self.guessed, guessed, "has guessed frames"),
        ];
        let much = both.into_iter().filter(|(shown, of_stacks, _)| *shown > of_stacks + 0.01);
        let text =
            |(shown, _, what)| format!("{} of what is shown {what}", paint.yellow(&percent(shown)));
        much.map(text).collect()
    }

    pub(super) fn of(profile: &Profile, tree: &CallTree) -> Shares {
        let value = profile.default_value;
        let guessed = profile.samples().filter(|it| it.evidence == Evidence::GuessedFrames);
        let guessed: u64 = guessed.map(|it| it.values[value]).sum();
        let guessed = Weight(guessed).share_of(profile.total(value));
        let mut shares = Shares { guessed, ..Shares::default() };
        for share in functions(tree) {
            let name = &*tree.labels()[share.label.index()].name;
            if name == "[truncated stack]" {
                shares.truncated += share.total.share_of(tree.total());
            } else if name.starts_with('[') && name.contains("+0x") {
                shares.unnamed += share.self_weight.share_of(tree.total());
            }
        }
        shares
    }
}
