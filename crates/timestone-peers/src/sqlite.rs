//! SQLite, with a write-ahead log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::engine::{Engine, Failure, Promise, Worker};

struct Sqlite {
    path: PathBuf,
    promise: Promise,
}

pub fn open(directory: &Path, promise: Promise) -> Result<Box<dyn Engine>, Failure> {
    let sqlite = Sqlite { path: directory.join("sqlite"), promise };
    let connection = sqlite.connect()?;
    connection.execute("CREATE TABLE numbers (key INTEGER PRIMARY KEY, value INTEGER)", ())?;
    Ok(Box::new(sqlite))
}

impl Sqlite {
    fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(Duration::from_secs(60))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = if self.promise == Promise::Durable { "FULL" } else { "OFF" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(connection)
    }
}

impl Engine for Sqlite {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(SqliteWorker(self.connect()?)))
    }
}

struct SqliteWorker(Connection);

impl Worker for SqliteWorker {
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        let mut statement = self.0.prepare_cached("SELECT value FROM numbers WHERE key = ?")?;
        let value = statement.query_row([key.cast_signed()], |row| row.get::<_, i64>(0));
        Ok(value.optional()?.map(i64::cast_unsigned))
    }

    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut statement =
            transaction.prepare_cached("INSERT OR REPLACE INTO numbers VALUES (?, ?)")?;
        for key in keys {
            statement.execute([key.cast_signed(), value.cast_signed()])?;
        }
        drop(statement);
        Ok(transaction.commit()?)
    }
}
