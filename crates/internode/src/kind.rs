//! [`Kind`]: what is asked, and [`Lane`]: which threads answer it.

/// What is asked of a node. Each kind has a service of its own; a node refuses kinds that it has no service for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// A read: the request is a `coordinator::ReadCommand`, the answer an `Answer`.
    pub const READ: Self = Self(1);
    /// A command that is to be executed where a replica is.
    pub const COMMAND: Self = Self(2);
    /// Files and positions of a tablet, and their copies.
    pub const COPY: Self = Self(3);
    /// Facts about the node for operators: load and lag.
    pub const STANDING: Self = Self(4);
}

/// Which threads of the node that is asked answer a request. The node that asks chooses: it knows what it asks for. Each lane has threads
/// of its own, so what waits or works for long in one lane does not hold up another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// Touches one partition, and waits for nothing.
    Point = 0,
    /// May wait until the node has applied records of the log, or for the log itself.
    Waiting = 1,
    /// May read much.
    Heavy = 2,
    /// Copies files. Such requests have connections of their own, so that they do not fill the buffers of others.
    Copy = 3,
}

impl Lane {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [Self::Point, Self::Waiting, Self::Heavy, Self::Copy];

    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| *lane as u8 == number)
    }

    /// Its name in the names of threads.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Waiting => "waiting",
            Self::Heavy => "heavy",
            Self::Copy => "copy",
        }
    }
}
