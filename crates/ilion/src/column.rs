//! How a program names a column of a result.

use std::fmt::Display;

/// A column of a result: its name, or its index from 0.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// let row = database.query_one("SELECT cluster_name, bootstrapped FROM system.local", ())?;
/// assert_eq!(row.get::<String>("cluster_name")?, row.get::<String>(0)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Column: Display + private::Sealed {
    #[doc(hidden)]
    fn position_in(&self, names: &mut dyn ExactSizeIterator<Item = &str>) -> Option<usize>;
}

mod private {
    pub trait Sealed {}
    impl Sealed for str {}
    impl Sealed for String {}
    impl Sealed for usize {}
    impl<C: Sealed + ?Sized> Sealed for &C {}
}

impl Column for str {
    fn position_in(&self, names: &mut dyn ExactSizeIterator<Item = &str>) -> Option<usize> {
        let mut names = names;
        Iterator::position(&mut names, |name| name == self)
    }
}

impl Column for String {
    fn position_in(&self, names: &mut dyn ExactSizeIterator<Item = &str>) -> Option<usize> {
        self.as_str().position_in(names)
    }
}

impl Column for usize {
    fn position_in(&self, names: &mut dyn ExactSizeIterator<Item = &str>) -> Option<usize> {
        (*self < names.len()).then_some(*self)
    }
}

impl<C: Column + ?Sized> Column for &C {
    fn position_in(&self, names: &mut dyn ExactSizeIterator<Item = &str>) -> Option<usize> {
        (**self).position_in(names)
    }
}
