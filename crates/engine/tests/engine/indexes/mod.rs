//! Secondary indexes: a search gives what a filtered scan gives, whatever came before it.

mod history;
mod table;
