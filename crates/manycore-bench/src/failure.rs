//! The two kinds of failures that the command line distinguishes.

/// Why there is no result, in one line that names the culprit and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request makes no sense: an unknown lock, no threads. Exit status 2.
    Usage(String),
    /// The measurement failed. Exit status 1.
    Failed(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

impl From<manycore_measure::paired::Unusable> for Failure {
    fn from(error: manycore_measure::paired::Unusable) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Failure> for manycore_launch::failure::Failure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Usage(text) => Self::BadInput(text),
            Failure::Failed(text) => Self::failed(text),
        }
    }
}
