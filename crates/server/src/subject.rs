//! The statement of a request, for the counting of its costs.

use std::sync::Arc;

use ilion_query::{Prepared, Shape};
use smallvec::SmallVec;

/// The statement of a request.
#[derive(Debug, Default)]
pub(crate) enum Subject {
    /// No counted statement.
    #[default]
    None,
    Prepared(Arc<Prepared>),
    Text(Arc<Shape>),
    Batch {
        kind: &'static str,
        /// The shapes of the batch's statements, without duplicates.
        members: SmallVec<[Arc<Shape>; 2]>,
    },
}

impl Subject {
    /// The id under which the costs of the statement are counted; `None` if it is not counted.
    #[inline]
    pub fn id(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Prepared(prepared) => Some(prepared.shape().id),
            Self::Text(shape) => Some(shape.id),
            Self::Batch { kind, members } => {
                let start = kind.len() as u64 + 1;
                let mix =
                    |mixed: u64, shape: &Arc<Shape>| (mixed ^ shape.id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                Some(members.iter().fold(start, mix))
            }
        }
    }

    /// The shape of the statement. Requires: it is counted.
    pub fn shape(&self) -> Arc<Shape> {
        match self {
            Self::None => Arc::default(),
            Self::Prepared(prepared) => prepared.shape().clone(),
            Self::Text(shape) => shape.clone(),
            Self::Batch { kind, members } => {
                Arc::new(Shape::of_batch(kind, members.iter().map(AsRef::as_ref)))
            }
        }
    }
}
