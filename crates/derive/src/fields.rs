//! The fields of a struct, and their options.

use syn::ext::IdentExt as _;
use syn::{Data, DeriveInput, Field, Fields, Generics, Ident, LitStr, Type, TypeParamBound};

/// Maximum number of fields of a tuple struct: the library has no implementations for longer tuples.
const TUPLE_MAX: usize = 12;

/// The fields of a struct, as far as they are columns.
pub enum Shape {
    /// Fields with names.
    Named(Vec<NamedField>),
    /// The types of the fields of a tuple struct.
    Tuple(Vec<Type>),
}

/// A field with a name.
pub struct NamedField {
    pub ident: Ident,
    pub ty: Type,
    /// The column, or the bind marker; `None` if the field is skipped.
    pub column: Option<String>,
}

/// The fields of the struct that a derive is on.
///
/// # Errors
/// The type is no struct, has too many fields without names, or an option is wrong; the error points at the place and names the field.
pub fn fields_of(input: &DeriveInput) -> syn::Result<Shape> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            &input.ident,
            format!("{}: only a struct can be a row", input.ident),
        ));
    };
    match &data.fields {
        Fields::Named(fields) => fields
            .named
            .iter()
            .map(named)
            .collect::<syn::Result<_>>()
            .map(Shape::Named),
        Fields::Unnamed(fields) => {
            if let Some(extra) = fields.unnamed.iter().nth(TUPLE_MAX) {
                let problem = format!(
                    "{}: a struct whose fields have no names has at most {TUPLE_MAX} of them; give them names",
                    input.ident
                );
                return Err(syn::Error::new_spanned(extra, problem));
            }
            let types = fields.unnamed.iter().enumerate();
            types
                .map(|(index, field)| tuple(index, field))
                .collect::<syn::Result<_>>()
                .map(Shape::Tuple)
        }
        Fields::Unit => Ok(Shape::Named(Vec::new())),
    }
}

/// The type parameters of a struct, each with this additional bound.
pub fn with_bound(generics: &Generics, bound: &TypeParamBound) -> Generics {
    let mut bounded = generics.clone();
    for parameter in bounded.type_params_mut() {
        parameter.bounds.push(bound.clone());
    }
    bounded
}

fn named(field: &Field) -> syn::Result<NamedField> {
    let Some(ident) = field.ident.clone() else {
        return Err(syn::Error::new_spanned(field, "a field without a name"));
    };
    let name = ident.unraw().to_string();
    let (mut renamed, mut is_skipped) = (None, false);
    for attribute in field
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("ilion"))
    {
        attribute.parse_nested_meta(|option| {
            if option.path.is_ident("rename") {
                let text: LitStr = option.value()?.parse()?;
                if text.value().is_empty() {
                    return Err(syn::Error::new(
                        text.span(),
                        format!("field {name}: the name of a column is not empty"),
                    ));
                }
                renamed = Some(text.value());
                Ok(())
            } else if option.path.is_ident("skip") {
                is_skipped = true;
                Ok(())
            } else {
                Err(option.error(format!("field {name}: expected rename = \"..\" or skip")))
            }
        })?;
    }
    if is_skipped && renamed.is_some() {
        let problem = format!("field {name}: a field that is skipped has no name in CQL");
        return Err(syn::Error::new_spanned(field, problem));
    }
    Ok(NamedField {
        ident,
        ty: field.ty.clone(),
        column: (!is_skipped).then(|| renamed.unwrap_or(name)),
    })
}

fn tuple(index: usize, field: &Field) -> syn::Result<Type> {
    match field
        .attrs
        .iter()
        .find(|attribute| attribute.path().is_ident("ilion"))
    {
        Some(option) => Err(syn::Error::new_spanned(
            option,
            format!("field {index}: a field without a name has no options; columns are read by position"),
        )),
        None => Ok(field.ty.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_of(text: &str) -> String {
        let input: DeriveInput = syn::parse_str(text).unwrap();
        match fields_of(&input) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    fn columns_of(text: &str) -> Vec<Option<String>> {
        let input: DeriveInput = syn::parse_str(text).unwrap();
        match fields_of(&input).unwrap() {
            Shape::Named(fields) => fields.into_iter().map(|field| field.column).collect(),
            Shape::Tuple(types) => vec![None; types.len()],
        }
    }

    #[test]
    fn a_column_has_the_name_of_its_field_unless_an_option_says_otherwise() {
        let song = "struct Song { id: i32, r#type: String, #[ilion(rename = \"Long Name\")] name: String, #[ilion(skip)] seen: u8 }";
        let text = |name: &str| Some(name.to_owned());
        assert_eq!(
            columns_of(song),
            [text("id"), text("type"), text("Long Name"), None]
        );
        assert_eq!(columns_of("struct Nothing;"), []);
    }

    #[test]
    fn a_wrong_option_is_refused_with_the_name_of_its_field() {
        for (text, problem) in [
            (
                "struct S { #[ilion(renam = \"a\")] id: i32 }",
                "field id: expected rename = \"..\" or skip",
            ),
            (
                "struct S { #[ilion(rename = \"\")] id: i32 }",
                "field id: the name of a column is not empty",
            ),
            (
                "struct S { #[ilion(skip, rename = \"a\")] id: i32 }",
                "field id: a field that is skipped has no name in CQL",
            ),
            (
                "struct S(u8, #[ilion(skip)] u8);",
                "field 1: a field without a name has no options; columns are read by position",
            ),
            ("enum E { A }", "E: only a struct can be a row"),
            (
                "struct S(u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8);",
                "S: a struct whose fields have no names has at most 12 of them; give them names",
            ),
        ] {
            assert_eq!(problem_of(text), problem, "{text}");
        }
    }
}
