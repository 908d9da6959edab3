//! Options of a vector index, with the names and defaults of Cassandra's storage-attached index.

use crate::{Error, Similarity};

const SIMILARITY_FUNCTION: &str = "similarity_function";
const MAXIMUM_NODE_CONNECTIONS: &str = "maximum_node_connections";
const CONSTRUCTION_BEAM_WIDTH: &str = "construction_beam_width";
const OPTIMIZE_FOR: &str = "optimize_for";

/// Whether searches should be fast, or almost always right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptimizeFor {
    /// The default: at least 95 of 100 results are the same as those of a scan.
    #[default]
    Latency,
    /// Costs several times as much work per search, to find the last few results.
    Recall,
}

/// How a graph is built and searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `similarity_function`.
    pub similarity: Similarity,
    /// `maximum_node_connections`: number of links of a new node; it keeps at most twice as many.
    pub maximum_node_connections: u16,
    /// `construction_beam_width`: number of near nodes that are visited before a node is linked.
    pub construction_beam_width: u16,
    /// `optimize_for`.
    pub optimize_for: OptimizeFor,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            similarity: Similarity::Cosine,
            maximum_node_connections: 16,
            construction_beam_width: 100,
            optimize_for: OptimizeFor::Latency,
        }
    }
}

impl Options {
    /// Maximum of `maximum_node_connections`.
    const MAXIMUM_NODE_CONNECTIONS_MAX: u16 = 512;
    /// Maximum of `construction_beam_width`.
    const CONSTRUCTION_BEAM_WIDTH_MAX: u16 = 3200;

    /// The names of all options.
    pub const NAMES: [&str; 4] = [
        MAXIMUM_NODE_CONNECTIONS,
        CONSTRUCTION_BEAM_WIDTH,
        SIMILARITY_FUNCTION,
        OPTIMIZE_FOR,
    ];

    /// Parses the options of an index by name; ignores other names.
    ///
    /// # Errors
    /// [`Error::Refused`] with Cassandra's message.
    pub fn parse<'o>(index: &str, option: impl Fn(&str) -> Option<&'o str>) -> Result<Self, Error> {
        let mut options = Self::default();
        if let Some(text) = option(MAXIMUM_NODE_CONNECTIONS) {
            let most = Self::MAXIMUM_NODE_CONNECTIONS_MAX;
            options.maximum_node_connections = number(text, most).map_err(|wrong| {
                Error::Refused(match wrong {
                    Wrong::NoNumber => format!(
                        "Maximum number of connections {text} is not a valid integer for index {index}"
                    ),
                    Wrong::OutOfRange => format!(
                        "Maximum number of connections for index {index} cannot be <= 0 or > {most}, was {text}"
                    ),
                })
            })?;
        }
        if let Some(text) = option(CONSTRUCTION_BEAM_WIDTH) {
            let most = Self::CONSTRUCTION_BEAM_WIDTH_MAX;
            options.construction_beam_width = number(text, most).map_err(|wrong| {
                Error::Refused(match wrong {
                    Wrong::NoNumber => {
                        format!("Construction beam width {text} is not a valid integer for index {index}")
                    }
                    Wrong::OutOfRange => format!(
                        "Construction beam width for index {index} cannot be <= 0 or > {most}, was {text}"
                    ),
                })
            })?;
        }
        if let Some(text) = option(SIMILARITY_FUNCTION) {
            options.similarity = Similarity::parse(text).ok_or_else(|| {
                Error::Refused(format!(
                    "Similarity function {} was not recognized for index {index}. Valid values are: {}",
                    text.to_uppercase(),
                    Similarity::ALL.map(Similarity::name).join(", ")
                ))
            })?;
        }
        if let Some(text) = option(OPTIMIZE_FOR) {
            options.optimize_for = match text.to_uppercase().as_str() {
                "LATENCY" => OptimizeFor::Latency,
                "RECALL" => OptimizeFor::Recall,
                upper => {
                    return Err(Error::Refused(format!(
                        "optimize_for '{upper}' was not recognized for index {index}. Valid values are: LATENCY, RECALL"
                    )));
                }
            };
        }
        Ok(options)
    }

    /// Number of links that a node keeps in a level.
    pub(crate) fn links_max(&self, level: u8) -> usize {
        let connections = usize::from(self.maximum_node_connections);
        if level == 0 { connections * 2 } else { connections }
    }
}

enum Wrong {
    NoNumber,
    OutOfRange,
}

fn number(text: &str, most: u16) -> Result<u16, Wrong> {
    let number: i32 = text.parse().map_err(|_| Wrong::NoNumber)?;
    let number = u16::try_from(number).map_err(|_| Wrong::OutOfRange)?;
    (1..=most)
        .contains(&number)
        .then_some(number)
        .ok_or(Wrong::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &'static str)]) -> Result<Options, String> {
        let option = |name: &str| {
            pairs
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| *value)
        };
        Options::parse("by_v", option).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_cassandras() {
        let options = parse(&[]).unwrap();
        assert_eq!(options.similarity, Similarity::Cosine);
        assert_eq!(options.maximum_node_connections, 16);
        assert_eq!(options.construction_beam_width, 100);
    }

    #[test]
    fn options_are_read_in_any_case_and_checked() {
        let options = parse(&[
            ("similarity_function", "Dot_Product"),
            ("maximum_node_connections", "512"),
            ("construction_beam_width", "3200"),
            ("optimize_for", "recall"),
        ]);
        let options = options.unwrap();
        assert_eq!(options.similarity, Similarity::DotProduct);
        assert_eq!(
            (options.maximum_node_connections, options.construction_beam_width),
            (512, 3200)
        );
        assert_eq!(options.optimize_for, OptimizeFor::Recall);
        for (name, value, refusal) in [
            (
                "similarity_function",
                "angle",
                "Similarity function ANGLE was not recognized for index by_v. Valid values are: EUCLIDEAN, DOT_PRODUCT, COSINE",
            ),
            (
                "maximum_node_connections",
                "many",
                "Maximum number of connections many is not a valid integer for index by_v",
            ),
            (
                "maximum_node_connections",
                "513",
                "Maximum number of connections for index by_v cannot be <= 0 or > 512, was 513",
            ),
            (
                "construction_beam_width",
                "-1",
                "Construction beam width for index by_v cannot be <= 0 or > 3200, was -1",
            ),
            (
                "optimize_for",
                "size",
                "optimize_for 'SIZE' was not recognized for index by_v. Valid values are: LATENCY, RECALL",
            ),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err(), refusal);
        }
    }
}
