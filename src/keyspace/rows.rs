//! A user's row: a dense number within the partition, by which bitmaps and records are indexed.
//!
//! Owns the two maps user -> row and row -> user, their buckets and the node's cache. A row never changes hands, so what
//! is cached stays right; that the row still bears its user's name is checked by every writing script.

use quick_cache::sync::Cache;

use super::{Call, Keyspace, Partition, Request, Script, Unavailable, partition, reply};
use crate::ids::UserId;

/// Buckets of user -> row in each partition. At a million users a bucket holds 30, and four million still fit into
/// listpacks of 128 entries.
const USER_BUCKETS: u64 = 32_768;

/// Rows whose users share one bucket of row -> user, and whose records share one of records.
pub const ROWS_PER_BUCKET: u32 = 128;

/// Users whose row a node remembers: some 40 MB at most, with ids of usual length.
const CACHED: usize = 400_000;

static ASSIGN_ROW: Script = Script::new("assign_row", &[include_str!("assign_row.lua")]);

/// A user's number within its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row(u32);

impl Row {
    /// The row with this number.
    pub fn number(number: u32) -> Row {
        Row(number)
    }

    /// The number itself.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Which bucket of 128 rows it is in.
    pub fn bucket(self) -> u32 {
        self.0 / ROWS_PER_BUCKET
    }

    /// Its name within the bucket.
    pub fn field(self) -> u32 {
        self.0 % ROWS_PER_BUCKET
    }
}

pub(super) type RowCache = Cache<UserId, Row>;

pub(super) fn row_cache() -> RowCache {
    Cache::new(CACHED)
}

/// Which bucket of users holds `user`.
pub fn bucket_of(user: &UserId) -> u32 {
    // The low bits choose the partition; these are others, so that buckets fill evenly with every P.
    ((partition::hash(user) >> 32) % USER_BUCKETS) as u32
}

impl Keyspace {
    /// The row of `user`, if it has ever written.
    pub async fn row(&self, user: &UserId) -> Result<Option<Row>, Unavailable> {
        self.each_row_of(std::slice::from_ref(user))
            .await?
            .pop()
            .unwrap_or(Ok(None))
    }

    /// The rows of many users, of those that have one.
    pub async fn known_rows(&self, users: &[UserId]) -> Result<Vec<Option<Row>>, Unavailable> {
        self.each_row_of(users).await?.into_iter().collect()
    }

    /// The rows of many users, in one round trip for those that this node does not know; a partition in trouble fails its
    /// own users only.
    async fn each_row_of(
        &self,
        users: &[UserId],
    ) -> Result<Vec<Result<Option<Row>, Unavailable>>, Unavailable> {
        let mut rows: Vec<Result<Option<Row>, Unavailable>> =
            users.iter().map(|user| Ok(self.rows.get(user))).collect();
        let unknown: Vec<usize> = (0..users.len())
            .filter(|&i| matches!(rows[i], Ok(None)))
            .collect();
        if unknown.is_empty() {
            return Ok(rows);
        }
        let mut request = Request::new();
        for &i in &unknown {
            let (user, p) = (&users[i], self.partition_of(&users[i]));
            let mut get = redis::cmd("HGET");
            get.arg(self.keys.row_of(p, bucket_of(user))).arg(user.as_str());
            request.command(get);
        }
        for (&i, value) in unknown.iter().zip(self.run(&request).await?) {
            let number: Result<Option<u32>, Unavailable> = reply(value);
            rows[i] = number.map(|number| number.map(|number| self.remembered(&users[i], number)));
        }
        Ok(rows)
    }

    /// The rows of many users; those that have none get one.
    pub async fn rows_for(&self, users: &[UserId]) -> Result<Vec<Row>, Unavailable> {
        self.each_row_for(users).await?.into_iter().collect()
    }

    /// As [`Keyspace::rows_for`], but a partition in trouble fails its own users only.
    pub async fn each_row_for(&self, users: &[UserId]) -> Result<Vec<Result<Row, Unavailable>>, Unavailable> {
        let mut rows: Vec<Option<Result<Row, Unavailable>>> = self
            .each_row_of(users)
            .await?
            .into_iter()
            .map(Result::transpose)
            .collect();
        // A wrong guess costs a round trip and brings the right one, so a few turns are enough even in a crowd.
        for _ in 0..64 {
            let missing: Vec<usize> = (0..users.len()).filter(|&i| rows[i].is_none()).collect();
            if missing.is_empty() {
                break;
            }
            let mut request = Request::new();
            let mut guesses = self.next_rows.lock().clone();
            for &i in &missing {
                let p = self.partition_of(&users[i]);
                self.ask_to_assign(&mut request, p, &users[i], guesses[p.index()]);
                guesses[p.index()] += 1;
            }
            for (&i, value) in missing.iter().zip(self.run(&request).await?) {
                match reply::<(Option<u32>, u32)>(value) {
                    Ok((row, next)) => {
                        self.next_rows.raise(self.partition_of(&users[i]), next);
                        rows[i] = row.map(|number| Ok(self.remembered(&users[i], number)));
                    }
                    Err(cause) => rows[i] = Some(Err(cause)),
                }
            }
        }
        let crowded = || Err(Unavailable::Refused("too many new users at once".into()));
        Ok(rows.into_iter().map(|row| row.unwrap_or_else(crowded)).collect())
    }

    fn remembered(&self, user: &UserId, number: u32) -> Row {
        self.rows.insert(user.clone(), Row(number));
        Row(number)
    }

    /// Forgets a row that turned out to be another's or nobody's.
    pub(super) fn forget_row(&self, user: &UserId) {
        self.rows.remove(user);
    }

    fn ask_to_assign(&self, request: &mut Request, p: Partition, user: &UserId, guess: u32) {
        let bucket = guess / ROWS_PER_BUCKET;
        let call = Call::guarded(self, p)
            .key(self.keys.row_of(p, bucket_of(user)))
            .key(self.keys.user_of(p, bucket))
            .key(self.keys.user_of(p, bucket + 1))
            .arg(user)
            .arg(bucket * ROWS_PER_BUCKET)
            .arg(ROWS_PER_BUCKET);
        request.script(&ASSIGN_ROW, call.keys(), call.args());
    }
}

/// For each partition, the row that this node believes the next new user will get.
#[derive(Default)]
pub(super) struct NextRows(std::sync::Mutex<Vec<u32>>);

impl NextRows {
    pub(super) fn new(rows: Vec<u32>) -> NextRows {
        NextRows(std::sync::Mutex::new(rows))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn raise(&self, p: Partition, next: u32) {
        let mut rows = self.lock();
        rows[p.index()] = rows[p.index()].max(next);
    }
}
