//! `#[derive(FromRow)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, parse_quote};

use crate::fields::{NamedField, Shape, fields_of, with_bound};

/// The implementation of `FromRow`. Fields with names are read by name, others by position.
pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let body = match fields_of(input)? {
        Shape::Named(fields) => {
            let values = fields.iter().map(value);
            quote! { Ok(Self { #(#values),* }) }
        }
        Shape::Tuple(types) => {
            let names: Vec<_> = (0..types.len())
                .map(|index| format_ident!("field{index}"))
                .collect();
            quote! {
                let (#(#names,)*): (#(#types,)*) = ::ilion::FromRow::from_row(row)?;
                Ok(Self(#(#names),*))
            }
        }
    };
    let generics = with_bound(&input.generics, &parse_quote!(::ilion::FromValue));
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let (_, type_generics, _) = input.generics.split_for_impl();
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::ilion::FromRow for #name #type_generics #where_clause {
            fn from_row(row: &::ilion::Row) -> ::core::result::Result<Self, ::ilion::Error> {
                #body
            }
        }
    })
}

/// The value of a field. The span of its type makes the compiler show the field whose type no column has.
fn value(field: &NamedField) -> TokenStream {
    let (ident, ty) = (&field.ident, &field.ty);
    match &field.column {
        Some(column) => quote_spanned! { ty.span() => #ident: ::ilion::Row::get::<#ty>(row, #column)? },
        None => quote_spanned! { ty.span() => #ident: <#ty as ::core::default::Default>::default() },
    }
}
