//! `#[derive(ToValues)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Index, parse_quote};

use crate::fields::{Shape, fields_of, with_bound};

/// The implementation of `Arguments`. Fields with names are bound to the markers of these names, others by position.
pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let shape = fields_of(input)?;
    let (count, values) = match &shape {
        Shape::Named(fields) => {
            let bound = fields
                .iter()
                .filter_map(|field| Some((field, field.column.as_ref()?)));
            let pairs: Vec<TokenStream> = bound
                .map(|(field, marker)| {
                    let ident = &field.ident;
                    quote_spanned! { field.ty.span() => (#marker, &self.#ident as &dyn ::ilion::ToValue) }
                })
                .collect();
            (
                pairs.len(),
                quote! { ::ilion::derived::by_name(&[#(#pairs),*], markers) },
            )
        }
        Shape::Tuple(types) => {
            let values = types.iter().enumerate().map(|(index, ty)| {
                let index = Index::from(index);
                quote_spanned! { ty.span() => &self.#index as &dyn ::ilion::ToValue }
            });
            (
                types.len(),
                quote! { ::ilion::derived::by_position(&[#(#values),*], markers) },
            )
        }
    };
    let generics = with_bound(&input.generics, &parse_quote!(::ilion::ToValue));
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let (_, type_generics, _) = input.generics.split_for_impl();
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::ilion::Arguments for #name #type_generics #where_clause {
            fn to_values(
                &self,
                markers: &[::ilion::derived::ColumnSpec],
            ) -> ::core::result::Result<::ilion::derived::Values, ::ilion::Error> {
                #values
            }

            fn count(&self) -> usize {
                #count
            }
        }
    })
}
