//! STARTUP: `[string map]` of options.

use crate::compression::Compression;
use crate::error::Error;
use crate::notation::{Input, try_count, try_string};
use crate::version::Version;

/// STARTUP: the options of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    /// Names and values as sent; unknown names are ignored.
    pub options: Vec<(String, String)>,
}

impl Startup {
    /// The options that Ilion's own clients send.
    pub fn new(compression: Option<Compression>) -> Self {
        let mut options = vec![("CQL_VERSION".to_owned(), "3.4.7".to_owned())];
        if let Some(compression) = compression {
            options.push(("COMPRESSION".to_owned(), compression.name().to_owned()));
        }
        Self { options }
    }

    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The CQL version. Every client must send one; its value is not checked.
    ///
    /// # Errors
    /// If it is missing.
    pub fn cql_version(&self) -> Result<&str, Error> {
        self.option("CQL_VERSION")
            .ok_or_else(|| Error::refused("Missing value CQL_VERSION in STARTUP message"))
    }

    /// The compression that the client requests; `None` for none.
    ///
    /// # Errors
    /// If it is unknown, or not available in this version.
    pub fn compression(&self, version: Version) -> Result<Option<Compression>, Error> {
        let Some(name) = self.option("COMPRESSION").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let compression = Compression::from_name(name)
            .ok_or_else(|| Error::refused(format!("Unknown compression algorithm: {name}")))?;
        if compression == Compression::Snappy && version >= Version::V5 {
            return Err(Error::refused(
                "Snappy compression is not supported in protocol V5",
            ));
        }
        Ok(Some(compression))
    }

    /// True if the server must answer OVERLOADED at once while memory is short, instead of letting the request wait. Compat:
    /// `by_default` applies to v5 only.
    pub fn throws_on_overload(&self, version: Version, by_default: bool) -> bool {
        match self.option("THROW_ON_OVERLOAD") {
            Some(value) => value == "1",
            None => by_default && version >= Version::V5,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        try_count(out, "the map of options", self.options.len())?;
        for (name, value) in &self.options {
            try_string(out, "the name of an option", name)?;
            try_string(out, "the value of an option", value)?;
        }
        Ok(())
    }

    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let options = input.string_map()?;
        Ok(Self { options })
    }
}
