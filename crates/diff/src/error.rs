//! Why two profiles cannot be compared.

/// Why there is no [`crate::DiffTree`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// A run has no samples, or a side has no runs.
    #[error("{name} has no samples")]
    Empty {
        /// The run's name, or `before` or `after` where a side has no runs.
        name: String,
    },
    /// The runs of one side measured different things.
    #[error("{one} and {other} measured different things")]
    MixedSide {
        /// The first run of the side.
        one: String,
        /// A run that differs.
        other: String,
    },
    /// A run's duration is needed and not known.
    #[error("{name} does not say how long it took")]
    NoDuration {
        /// The run's name.
        name: String,
    },
    /// The function to scale by is not in a side.
    #[error("{side} has no function {function}")]
    NoFunction {
        /// `before` or `after`.
        side: &'static str,
        /// The function.
        function: String,
    },
    /// The siblings of a tree do not stand in the order of their names.
    #[error("the stacks of {name} are not sorted by name")]
    Unsorted {
        /// The run's name.
        name: String,
    },
    /// Weights do not fit into 64 bits.
    #[error("the weights would be larger than 64 bits")]
    TooLarge,
}
