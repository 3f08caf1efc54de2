//! The wallet, as a backend fills and empties it.
//!
//! Owns the keys and arguments of `wallet.lua`. What check-ins pay into it is [`super::rewards`]'.

use super::rewards::{MAX_CARDS, MAX_POINTS};
use super::stored::RECORD;
use super::{CheckIns, Reward};
use crate::ids::UserId;
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Memory, Operation, Row, Script, Unavailable};

static WALLET: Script = Script::new("wallet", &[NUMBERS, MUTATION, RECORD, include_str!("wallet.lua")]);

/// What is to be added to a wallet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Points; negative ones are taken out.
    pub points: i64,
    /// Make-up cards.
    pub cards: u32,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It was made; the wallet holds this after it.
    Applied(Reward),
    /// The same call came before, and changed it then; the wallet holds this now.
    Replayed(Reward),
    /// Less is there than was to be taken, namely this; nothing changed.
    Insufficient(Reward),
    /// More would be held than can be; nothing changed.
    Full(Reward),
    /// Another call came before under the same key; nothing changed.
    Conflict,
}

impl CheckIns {
    /// Changes the wallet of `user`, who may be new.
    pub async fn change_wallet(
        &self,
        user: &UserId,
        change: Change,
        operation: &Operation,
    ) -> Result<Changed, Unavailable> {
        let complete = |call: Call, row: Row| {
            let bucket = self.keyspace.keys().record(call.partition(), row.bucket());
            call.key(bucket)
                .arg(change.points)
                .arg(change.cards)
                .arg(MAX_POINTS)
                .arg(MAX_CARDS)
        };
        let memory = Memory::Operation(operation);
        let answer = self.keyspace.mutate(&WALLET, user, memory, complete).await?;
        if answer.conflict {
            return Ok(Changed::Conflict);
        }
        if answer.replayed.is_some() {
            return Ok(Changed::Replayed(
                self.record(user).await?.unwrap_or_default().wallet,
            ));
        }
        let mut fields = answer.fields();
        let outcome = fields.text()?;
        let held = Reward {
            points: fields.number()?,
            cards: fields.number()?,
        };
        match outcome {
            "APPLIED" => Ok(Changed::Applied(held)),
            "INSUFFICIENT" => Ok(Changed::Insufficient(held)),
            "FULL" => Ok(Changed::Full(held)),
            other => Err(Unavailable::Fault(format!("wallet.lua answered {other:?}"))),
        }
    }
}
