//! What every write shares: one script, guarded, remembered.
//!
//! Owns the leading keys and arguments of writing scripts (`mutation.lua`) and the retry when a row turns out to be
//! gone. What a write does is its feature's script's.

use redis::Value;

use super::{Keyspace, Operation, Partition, Request, Row, Script, Unavailable, reply};
use crate::ids::UserId;

/// The Lua part that comes first in every writing script.
pub const MUTATION: &str = include_str!("mutation.lua");

/// How a write is kept from being done twice.
#[derive(Debug, Clone)]
pub enum Memory<'a> {
    /// By its operation id.
    Operation(&'a Operation),
    /// By its place in an import: places of a partition are applied in order, each once, for ever.
    Place {
        /// Names the import: its file's content and its target.
        import: &'a str,
        /// From 1, without gaps within the partition.
        place: u64,
    },
    /// It may be run twice as it is.
    None,
}

/// What a writing script answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// When the same operation was done before, if it was, in ms since 1970: then this is what it answered.
    pub replayed: Option<i64>,
    /// Whether the same operation came before with other arguments: then there is no answer.
    pub conflict: bool,
    /// The fields, as the script documents them.
    pub text: String,
}

impl Answer {
    /// The answer's next fields, separated by spaces.
    pub fn fields(&self) -> Fields<'_> {
        Fields::of(&self.text)
    }
}

/// Reads an answer field by field.
pub struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    /// The fields of `text`, separated by spaces.
    pub fn of(text: &'a str) -> Fields<'a> {
        Fields(text.split(' '))
    }

    /// The next field, if there is one.
    #[allow(clippy::should_implement_trait)] // fields are read by kind, not iterated over
    pub fn next(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    /// The next field as text.
    pub fn text(&mut self) -> Result<&'a str, Unavailable> {
        self.0
            .next()
            .ok_or_else(|| Unavailable::Fault("a script's answer ends early".into()))
    }

    /// The next field as a number.
    pub fn number<T: std::str::FromStr>(&mut self) -> Result<T, Unavailable> {
        let text = self.text()?;
        text.parse()
            .map_err(|_| Unavailable::Fault(format!("a script answered {text:?} where a number belongs")))
    }

    /// The next field as a number, `-` meaning none.
    pub fn optional<T: std::str::FromStr>(&mut self) -> Result<Option<T>, Unavailable> {
        if self.0.clone().next() == Some("-") {
            self.text()?;
            return Ok(None);
        }
        self.number().map(Some)
    }

    /// The next field as a number, if there is one.
    pub fn further<T: std::str::FromStr>(&mut self) -> Result<Option<T>, Unavailable> {
        match self.0.clone().next() {
            Some(_) => self.number().map(Some),
            None => Ok(None),
        }
    }
}

/// Why one write of a batch was not done.
#[derive(Debug)]
pub enum NotDone {
    /// The row bears another name: ask for the row anew.
    RowGone,
    /// The place before this one has not been applied.
    Gap,
    /// Redis is away or refuses.
    Unavailable(Unavailable),
}

/// The keys and arguments of one script call.
pub struct Call {
    partition: Partition,
    keys: Vec<String>,
    args: Vec<String>,
}

impl Call {
    /// A call that is refused unless the data is what this node has seen: KEYS 1, ARGV 1 and 2.
    pub(super) fn guarded(keyspace: &Keyspace, partition: Partition) -> Call {
        Call {
            partition,
            keys: vec![keyspace.keys.generation(partition)],
            args: vec![
                keyspace.generation.clone(),
                keyspace.events_seen(partition).to_string(),
            ],
        }
    }

    /// Adds a key.
    pub fn key(mut self, key: String) -> Call {
        self.keys.push(key);
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl ToString) -> Call {
        self.args.push(arg.to_string());
        self
    }

    /// Where the user of this call lives.
    pub fn partition(&self) -> Partition {
        self.partition
    }

    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    pub(super) fn args(&self) -> &[String] {
        &self.args
    }
}

impl Keyspace {
    /// Begins a call of a writing script for `user`: KEYS 1 to 3, ARGV 1 to 6 of `mutation.lua`.
    pub fn call(&self, user: &UserId, row: Row, memory: &Memory<'_>) -> Call {
        let p = self.partition_of(user);
        let call = Call::guarded(self, p).key(self.keys.user_of(p, row.bucket()));
        let (key, kind, detail) = match memory {
            Memory::Operation(operation) => (
                self.keys.operation(p, operation.name()),
                "operation",
                operation.told(),
            ),
            Memory::Place { import, place } => (self.keys.import(p, import), "place", place.to_string()),
            // A script that needs no memory never looks at this key.
            Memory::None => (self.keys.generation(p), "none", String::new()),
        };
        call.key(key).arg(row.field()).arg(user).arg(kind).arg(detail)
    }

    /// Runs `script` for `user`, who gets a row if this is the first write. All of it, round trips and retries, takes at
    /// most the configured time.
    pub async fn mutate(
        &self,
        script: &'static Script,
        user: &UserId,
        memory: Memory<'_>,
        complete: impl Fn(Call, Row) -> Call,
    ) -> Result<Answer, Unavailable> {
        self.in_time(self.mutate_at_leisure(script, user, memory, complete))
            .await
    }

    async fn mutate_at_leisure(
        &self,
        script: &'static Script,
        user: &UserId,
        memory: Memory<'_>,
        complete: impl Fn(Call, Row) -> Call,
    ) -> Result<Answer, Unavailable> {
        for _ in 0..3 {
            let rows = self.rows_for(std::slice::from_ref(user)).await?;
            let Some(&row) = rows.first() else { break };
            let call = complete(self.call(user, row, &memory), row);
            match self.send(script, &[call]).await?.pop() {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(NotDone::RowGone)) => self.forget_row(user),
                Some(Err(NotDone::Unavailable(cause))) => return Err(cause),
                Some(Err(NotDone::Gap)) | None => break,
            }
        }
        Err(Unavailable::Fault(format!(
            "{} found no row for its user",
            script.name()
        )))
    }

    /// Sends many calls of one script in one pipeline, in order. Each has an outcome of its own.
    pub async fn send(
        &self,
        script: &'static Script,
        calls: &[Call],
    ) -> Result<Vec<Result<Answer, NotDone>>, Unavailable> {
        let mut request = Request::new();
        for call in calls {
            request.script(script, call.keys(), call.args());
        }
        let replies = self.run(&request).await?;
        Ok(calls
            .iter()
            .zip(replies)
            .map(|(call, value)| self.outcome(call, value))
            .collect())
    }

    /// Forgets what was cached of these users' rows after [`NotDone::RowGone`].
    pub fn forget_rows<'u>(&self, users: impl IntoIterator<Item = &'u UserId>) {
        users.into_iter().for_each(|user| self.forget_row(user));
    }

    fn outcome(&self, call: &Call, value: Value) -> Result<Answer, NotDone> {
        if let Value::ServerError(error) = &value {
            match error.code() {
                "NOROW" => return Err(NotDone::RowGone),
                "GAP" => return Err(NotDone::Gap),
                _ => {}
            }
        }
        let (status, events, text, at): (String, u64, String, Option<i64>) = match reply::<Vec<Value>>(value)
            .map_err(NotDone::Unavailable)?
            .as_slice()
        {
            [status, events, text] => read((status, events, text, &Value::Nil)),
            [status, events, text, at] => read((status, events, text, at)),
            _ => Err(Unavailable::Fault(
                "a writing script answered in another shape".into(),
            )),
        }
        .map_err(NotDone::Unavailable)?;
        self.saw_events(call.partition, events);
        Ok(Answer {
            replayed: at.filter(|_| status == "REPLAYED"),
            conflict: status == "CONFLICT",
            text,
        })
    }
}

type Raw<'v> = (&'v Value, &'v Value, &'v Value, &'v Value);

fn read((status, events, text, at): Raw<'_>) -> Result<(String, u64, String, Option<i64>), Unavailable> {
    Ok((
        reply(status.clone())?,
        reply(events.clone())?,
        reply(text.clone())?,
        reply(at.clone())?,
    ))
}
