//! Several inputs become one call tree.

use flame_profile::{
    CallTree, Columns, FoldedParts, Profile, SiblingOrder, TreeBuilder, TreeOptions, ValueType,
};

use crate::stacks::Stacks;

/// Why an input has no sum with those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A comparison beside plain stacks.
    #[error("one has two counts per line, another has one")]
    Columns,
    /// Weights of two kinds.
    #[error("it counts {} in {}, they count {} in {}", .it.name, .it.unit, .they.name, .they.unit)]
    Values {
        /// What the input counts.
        it: ValueType,
        /// What those before it count.
        they: ValueType,
    },
}

/// What has come together so far.
///
/// ```
/// use flame_formats::{Merge, MergeError};
/// use flame_profile::{Profile, SiblingOrder, TreeOptions, ValueType};
///
/// let profile = |value| Profile::new(vec![value]);
/// let mut merge = Merge::default();
/// merge.add_profile(&profile(ValueType::samples()), &TreeOptions::default())?;
/// let bytes = profile(ValueType::new("space", "bytes"));
/// let refused = merge.add_profile(&bytes, &TreeOptions::default()).unwrap_err();
/// assert_eq!(refused.to_string(), "it counts space in bytes, they count samples in count");
/// assert_eq!(merge.finish(SiblingOrder::Name).total().0, 0);
/// # Ok::<(), MergeError>(())
/// ```
#[derive(Default)]
pub struct Merge {
    builder: TreeBuilder,
    value: Option<ValueType>,
    columns: Option<Columns>,
    /// Whether equal siblings stay apart unless they follow each other.
    is_by_time: bool,
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("value", &self.value).finish_non_exhaustive()
    }
}

impl Merge {
    /// Nothing yet, for a tree whose siblings stand in this order.
    pub fn in_order(order: SiblingOrder) -> Merge {
        Merge { is_by_time: order == SiblingOrder::Time, ..Merge::default() }
    }

    /// Adds folded text.
    ///
    /// # Errors
    /// It has no sum with the others.
    pub fn add_folded(&mut self, parts: FoldedParts, columns: Columns) -> Result<(), MergeError> {
        self.check(columns, ValueType::samples())?;
        self.append(parts.into_builder());
        Ok(())
    }

    /// Adds the value of a profile that the options name, or its default.
    ///
    /// # Errors
    /// It has no sum with the others.
    pub fn add_profile(
        &mut self,
        profile: &Profile,
        options: &TreeOptions,
    ) -> Result<(), MergeError> {
        let value = options.value.unwrap_or(profile.default_value);
        let value_type = profile.value_types().get(value).cloned();
        self.check(Columns::One, value_type.unwrap_or_else(ValueType::samples))?;
        let mut builder = TreeBuilder::new();
        builder.add_profile(profile, options);
        self.append(builder);
        Ok(())
    }

    /// Adds the value of stacks that the options name, or the first.
    ///
    /// # Errors
    /// It has no sum with the others.
    pub fn add_stacks(&mut self, stacks: &Stacks, options: &TreeOptions) -> Result<(), MergeError> {
        let value_type = stacks.value_types().get(options.value.unwrap_or(0)).cloned();
        self.check(Columns::One, value_type.unwrap_or_else(ValueType::samples))?;
        self.append(stacks.to_builder(options));
        Ok(())
    }

    /// The tree of all.
    pub fn finish(self, order: SiblingOrder) -> CallTree {
        self.builder.finish(self.value.unwrap_or_else(ValueType::samples), order)
    }

    /// The first tree is taken as it is, which is all there is most of the time.
    fn append(&mut self, builder: TreeBuilder) {
        if self.builder.is_empty() {
            self.builder = builder;
        } else {
            self.builder.append(builder);
            if self.builder.is_crowded_with_trees() && !self.is_by_time {
                self.builder.compact();
            }
        }
    }

    fn check(&mut self, columns: Columns, value: ValueType) -> Result<(), MergeError> {
        if self.columns.is_some_and(|others| others != columns) {
            return Err(MergeError::Columns);
        }
        if let Some(others) = self.value.as_ref().filter(|others| **others != value) {
            return Err(MergeError::Values { it: value, they: others.clone() });
        }
        (self.columns, self.value) = (Some(columns), Some(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::{FoldedReader, SiblingOrder, Weight};

    use super::*;

    /// Folded text of this many stacks.
    fn parts(stacks: u32) -> FoldedParts {
        let text: String = (0..stacks).map(|at| format!("main;f{at};g{at} 1\n")).collect();
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
        reader.read(&mut text.as_bytes()).unwrap();
        FoldedParts::new([reader.into_part(true)]).unwrap()
    }

    #[test]
    fn many_inputs_of_the_same_stacks_take_the_room_of_a_few() {
        const STACKS: u32 = 10_000;
        let mut merge = Merge::default();
        for _ in 0..30 {
            merge.add_folded(parts(STACKS), Columns::One).unwrap();
            // 20,000 nodes each; a sixth of a million at most together.
            assert!(merge.builder.len() < 160_000, "{} nodes", merge.builder.len());
        }
        let tree = merge.finish(SiblingOrder::Name);
        assert_eq!(tree.total(), Weight(30 * u64::from(STACKS)));
        assert_eq!(tree.nodes().len(), 2 + 2 * STACKS as usize);
    }
}
