//! `manycore store bench`, with the other engines, as a program of its own.

use clap::Parser;
use timestone_peers::{Failure, Options};

/// TimeStone beside redb, LMDB, SQLite and fjall: 10,000 numbers, read and put.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> Result<(), Failure> {
    let Arguments { options } = Arguments::parse();
    options.check()?;
    options.run(|text| print!("{text}"))
}
