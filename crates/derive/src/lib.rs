//! `#[derive(FromRow)]` and `#[derive(ToValues)]` for the library `ilion`, which exports and documents both.
//!
//! | module | what |
//! | --- | --- |
//! | `fields` | the fields of a struct and their options: `#[ilion(rename = "..")]`, `#[ilion(skip)]` |
//! | `from_row` | columns to fields |
//! | `to_values` | fields to bind values |
//!
//! The generated code calls `::ilion`; what it needs beside the public interface is in the module `derived` of that crate.

mod fields;
mod from_row;
mod to_values;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Reads rows as values of this struct; `ilion` has the description.
#[proc_macro_derive(FromRow, attributes(ilion))]
pub fn derive_from_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    from_row::expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Binds the fields of this struct; `ilion` has the description.
#[proc_macro_derive(ToValues, attributes(ilion))]
pub fn derive_to_values(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    to_values::expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
