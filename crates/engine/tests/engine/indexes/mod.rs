//! Secondary indexes: a search gives what a filtered scan gives, whatever came before it.

mod crash;
mod damage;
mod foreign;
mod history;
mod life;
mod plain;
mod shortage;
mod snapshots;
mod table;
