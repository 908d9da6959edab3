//! Secondary indexes: a search gives what a filtered scan gives, whatever came before it.

mod crash;
mod foreign;
mod history;
mod life;
mod plain;
mod table;
