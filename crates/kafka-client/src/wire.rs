//! [`Wire`]: values as Kafka's protocol has them, in both directions.
//!
//! The versions of requests that this client speaks are those without tagged fields, so these forms are all there is:
//! ```text
//! i8, i16, i32, i64, bool: big-endian          string := length: i16, utf8        (length -1: null)
//! array := count: i32, value*  (count -1: null)  bytes := length: i32, byte*      (length -1: null)
//! ```
//! A message is a struct whose fields are in the order of the protocol; the macro `message` implements both directions.

use bytes::Bytes;
use ilion_codec::{Error, Reader, Writer};

/// A message that is being read: a cursor, and the whole whose parts are shared rather than copied.
pub struct Input<'a> {
    whole: &'a Bytes,
    reader: Reader<'a>,
}

impl<'a> Input<'a> {
    /// A cursor at the start.
    pub fn new(whole: &'a Bytes) -> Self {
        Self {
            whole,
            reader: Reader::new(whole),
        }
    }

    fn array<const SIZE: usize>(&mut self, expected: &'static str) -> Result<[u8; SIZE], Error> {
        let error = self.reader.error(expected);
        self.reader.take(SIZE)?.try_into().map_err(|_| error)
    }

    /// A length or a count; `None` for -1.
    fn length(length: i64, error: Error) -> Result<Option<usize>, Error> {
        match length {
            -1 => Ok(None),
            _ => usize::try_from(length).map(Some).map_err(|_| error),
        }
    }
}

/// A value of the protocol.
pub trait Wire: Sized {
    /// Appends its bytes.
    fn encode(&self, out: &mut Writer);

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are no value of this type. A length or count beyond the bytes that are there allocates no memory.
    fn decode(input: &mut Input<'_>) -> Result<Self, Error>;
}

macro_rules! integer {
    ($($type:ty, $expected:literal;)*) => {$(
        impl Wire for $type {
            fn encode(&self, out: &mut Writer) {
                out.bytes(&self.to_be_bytes());
            }

            fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
                input.array($expected).map(Self::from_be_bytes)
            }
        }
    )*};
}

integer! {
    i8, "a byte";
    i16, "two bytes";
    i32, "four bytes";
    i64, "eight bytes";
}

impl Wire for bool {
    fn encode(&self, out: &mut Writer) {
        out.bool(*self);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        i8::decode(input).map(|byte| byte != 0)
    }
}

impl Wire for String {
    fn encode(&self, out: &mut Writer) {
        encode_text(Some(self), out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let error = input.reader.error("a string that is not null");
        Option::decode(input)?.ok_or(error)
    }
}

impl Wire for Option<String> {
    fn encode(&self, out: &mut Writer) {
        encode_text(self.as_deref(), out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let error = input.reader.error("a string");
        let Some(length) = Input::length(i16::decode(input)?.into(), error)? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(input.reader.take(length)?);
        text.map(|text| Some(text.to_owned()))
            .map_err(|_| input.reader.error("text in UTF-8"))
    }
}

/// Text of more than 32 KiB is cut: names and messages are shorter.
fn encode_text(text: Option<&str>, out: &mut Writer) {
    let Some(text) = text else {
        return (-1_i16).encode(out);
    };
    let text = &text.as_bytes()[..text.len().min(i16::MAX as usize)];
    i16::try_from(text.len()).unwrap_or(i16::MAX).encode(out);
    out.bytes(text);
}

impl Wire for Bytes {
    fn encode(&self, out: &mut Writer) {
        out.bytes32(self);
    }

    /// Null is read as no bytes.
    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let error = input.reader.error("bytes");
        let Some(length) = Input::length(i32::decode(input)?.into(), error)? else {
            return Ok(Self::new());
        };
        let part = input.reader.take(length)?;
        Ok(input.whole.slice_ref(part))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn encode(&self, out: &mut Writer) {
        i32::try_from(self.len()).unwrap_or(i32::MAX).encode(out);
        self.iter().for_each(|value| value.encode(out));
    }

    /// Null is read as an empty array.
    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        Ok(Option::decode(input)?.unwrap_or_default())
    }
}

impl<T: Wire> Wire for Option<Vec<T>> {
    fn encode(&self, out: &mut Writer) {
        match self {
            Some(values) => values.encode(out),
            None => (-1_i32).encode(out),
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let error = input.reader.error("an array");
        let Some(count) = Input::length(i32::decode(input)?.into(), error)? else {
            return Ok(None);
        };
        // Grows with what is there, whatever the count says: each value has at least a byte.
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(T::decode(input)?);
        }
        Ok(Some(values))
    }
}

/// Declares structs whose fields are in the order of the protocol, and implements [`Wire`] for them.
macro_rules! message {
    ($(
        $(#[$about:meta])*
        struct $name:ident {
            $($(#[$of_field:meta])* $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl $crate::wire::Wire for $name {
            fn encode(&self, out: &mut ::ilion_codec::Writer) {
                let _ = &out;
                $($crate::wire::Wire::encode(&self.$field, out);)*
            }

            fn decode(input: &mut $crate::wire::Input<'_>) -> ::std::result::Result<Self, ::ilion_codec::Error> {
                let _ = &input;
                Ok(Self { $($field: $crate::wire::Wire::decode(input)?,)* })
            }
        }
    )*};
}

pub(crate) use message;

#[cfg(test)]
mod tests {
    use super::*;

    message! {
        /// A struct with one field of each form.
        struct Sample {
            /// A number.
            number: i16,
            /// Texts.
            texts: Vec<String>,
            /// A text, or null.
            maybe: Option<String>,
            /// An array, or null.
            numbers: Option<Vec<i64>>,
            /// Bytes.
            bytes: Bytes,
            /// A flag.
            flag: bool,
        }
    }

    fn encoded(value: &impl Wire) -> Bytes {
        let mut out = Writer::new();
        value.encode(&mut out);
        out.into_vec().into()
    }

    #[test]
    fn what_is_written_is_read_back_and_what_follows_is_left() {
        for (maybe, numbers) in [(None, None), (Some("x".to_owned()), Some(vec![-1, 2]))] {
            let sample = Sample {
                number: -7,
                texts: vec!["a".to_owned(), String::new()],
                maybe,
                numbers,
                bytes: Bytes::from_static(b"bytes"),
                flag: true,
            };
            let bytes: Bytes = [&encoded(&sample)[..], b"junk"].concat().into();
            let mut input = Input::new(&bytes);
            assert_eq!(Sample::decode(&mut input), Ok(sample));
            assert_eq!(input.reader.rest(), b"junk");
        }
    }

    #[test]
    fn a_count_that_the_bytes_do_not_have_is_an_error_and_no_allocation() {
        let huge = Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff, 0, 0]);
        assert!(Vec::<i8>::decode(&mut Input::new(&huge)).is_err());
        assert!(Bytes::decode(&mut Input::new(&huge)).is_err());
        let negative = Bytes::from_static(&[0xff, 0xff, 0xff, 0xfe]);
        assert!(Vec::<i8>::decode(&mut Input::new(&negative)).is_err());
    }
}
