//! `ilion cdc tail --format avro`: the lines of a stream as an object container file of Avro.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ilion_cdc::AvroFile;

use crate::Failure;
use crate::sink::line::{Line, Schemas, parse};

/// An Avro object container file, made from the lines that the node sends.
pub struct ChangesFile {
    marker: [u8; 16],
    begun: Option<(AvroFile, Schemas)>,
    /// Position behind the last change in the file, where another file would begin.
    came_upto: String,
}

impl ChangesFile {
    /// A file with this sync marker, for changes from the position `from` on.
    pub fn new(marker: [u8; 16], from: &str) -> Self {
        Self {
            marker,
            begun: None,
            came_upto: from.to_owned(),
        }
    }

    /// Takes a line, but not the last one of the stream. Returns the bytes to write before the next line, often none.
    pub fn take(&mut self, line: &str) -> Result<Vec<u8>, Failure> {
        match (parse(line), &mut self.begun) {
            (Some(Line::Schemas(schemas)), None) => {
                let begun = AvroFile::begin(&schemas.envelope, self.marker);
                let (file, head) = begun.map_err(Failure::Failed)?;
                self.begun = Some((file, schemas));
                Ok(head)
            }
            (Some(Line::Schemas(schemas)), Some((_, known))) if schemas == *known => Ok(Vec::new()),
            (Some(Line::Schemas(_)), Some(_)) => Err(Failure::Failed(format!(
                "the table was altered, and a file of Avro has one schema: this file is complete; begin another one with --from {}",
                self.came_upto
            ))),
            (Some(Line::Change { place, envelope, .. }), Some((file, _))) => {
                let datum = STANDARD.decode(envelope);
                let datum =
                    datum.map_err(|error| Failure::Failed(format!("a change is no base64: {error}")))?;
                file.add(&datum);
                self.came_upto = place.position;
                Ok(if file.is_full() {
                    file.take_block()
                } else {
                    Vec::new()
                })
            }
            // The node is about to wait for changes: write the unfinished block, so that readers of the file get all changes so far.
            (Some(Line::At(place)), Some((file, _))) => {
                self.came_upto = place.position;
                Ok(file.take_block())
            }
            _ => Err(Failure::Failed(
                "the node sent a line that is no change; is it older than this program?".to_owned(),
            )),
        }
    }

    /// The last block, which must still be written; may be empty.
    pub fn finish(&mut self) -> Vec<u8> {
        self.begun
            .as_mut()
            .map(|(file, _)| file.take_block())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: &str = r#"{"schema":"\"int\"","key_schema":"\"int\""}"#;
    const LONG: &str = r#"{"schema":"\"long\"","key_schema":"\"int\""}"#;
    const AT: &str = r#"{"at":"7:9","logged_ms":1}"#;

    #[test]
    fn a_file_ends_with_its_schema_and_says_where_the_next_one_begins() {
        let mut file = ChangesFile::new([7; 16], "earliest");
        let head = file.take(INT).unwrap();
        assert!(head.starts_with(b"Obj\x01") && head.ends_with(&[7; 16]));
        assert_eq!(file.take(INT).unwrap(), b"", "the same schema again");
        assert_eq!(file.take("7:5\t1\tAg==\tBA==").unwrap(), b"");
        assert_eq!(file.take("7:6\t1\tAg==\tBg==").unwrap(), b"");
        // Two data of one byte each: 2 and 3.
        let block = [&[4, 4, 4, 6][..], &[7; 16]].concat();
        assert_eq!(file.take(AT).unwrap(), block);
        let Err(Failure::Failed(altered)) = file.take(LONG) else {
            panic!("the schema is another one")
        };
        assert!(
            altered.ends_with("begin another one with --from 7:9"),
            "{altered}"
        );
        assert_eq!(file.finish(), b"");
    }

    #[test]
    fn lines_that_are_out_of_place_are_errors() {
        let mut file = ChangesFile::new([7; 16], "earliest");
        assert!(
            file.take("7:5\t1\tAg==\tBA==").is_err(),
            "a change before its schema"
        );
        file.take(INT).unwrap();
        for line in ["", "7:5\t1\tnull\t{}", r#"{"op":"i"}"#] {
            assert!(file.take(line).is_err(), "{line}");
        }
    }
}
