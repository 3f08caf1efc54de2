//! The answers about check-ins, as callers see them.

use async_graphql::{Enum, SimpleObject};
use chrono::{DateTime, NaiveDate, Utc};

use super::super::calendar::{Day, DayState};
use super::super::history::CheckInKind;
use super::super::make_up::MakeUpOutcome;
use super::super::making_up::MakeUpReceipt;
use super::super::rewards::{MAX_CARDS, MAX_POINTS};
use super::super::store::Receipt;
use super::super::wallet::Changed;
use super::super::{CheckIns, Record, Reward as Earned, streak};
use crate::day::Month;
use crate::error::Error;
use crate::graphql::scalars::{CalendarMonth, Date, SafeInt, int};
use crate::ids::UserId;
use crate::user::graphql::User;

/// One user's month.
#[derive(Debug, SimpleObject)]
pub struct Calendar {
    /// Whose month it is.
    user: User,
    /// Which month it is.
    month: CalendarMonth,
    /// Its days in order; a date that the time zone skipped is left out.
    days: Vec<CalendarDay>,
    /// How many of them have a check-in, made-up ones included: 0 to 31.
    checked_in_days: i32,
}

/// One day of a calendar.
#[derive(Debug, SimpleObject)]
pub struct CalendarDay {
    /// Which day it is.
    date: Date,
    /// What is known of it.
    state: DayState,
    /// Whether `makeUpCheckIn` would make it up now: it was missed, make-ups reach back to it, and the user holds a card.
    can_make_up: bool,
}

/// One check-in of a user.
#[derive(Debug, SimpleObject)]
pub struct CheckIn {
    /// The day it counts for.
    date: Date,
    /// How it came about.
    kind: CheckInKind,
}

/// Days in a row.
#[derive(Debug, SimpleObject)]
pub struct Streak {
    /// Days in a row up to today, or up to yesterday while today is open; of a past day, up to that day.
    current: i32,
    /// The longest ever, in days; of a past day, by then.
    longest: i32,
    /// How many days ever have a check-in; of a past day, by then.
    total: i32,
    /// Whether `current` and `longest` are exact. False only of a past day (`on`): then they are at least so much, and days
    /// before the kept years, which nobody knows any more, may make them more.
    exact: bool,
    /// Whether today is done; of a past day, whether that is.
    checked_in_today: bool,
    /// Whether the streak ends at `endsAt` unless the user checks in.
    at_risk: bool,
    /// When the streak ends unless the user checks in again; null if there is none.
    ends_at: Option<DateTime<Utc>>,
    /// The newest check-in; null before the first, and where it lies before the kept years as seen from a past day.
    last_date: Option<Date>,
    /// What the next check-in would earn; of a past day, what the one of the day after would have.
    next_reward: Option<Reward>,
}

/// Points and make-up cards that were earned.
#[derive(Debug, SimpleObject)]
pub struct Reward {
    /// How many points, 0 or more; they went to the wallet.
    points: SafeInt,
    /// How many make-up cards, 0 or more; they went to the wallet.
    make_up_cards: i32,
}

/// What a user holds.
#[derive(Debug, SimpleObject)]
pub struct Wallet {
    /// How many points, 0 or more.
    points: SafeInt,
    /// How many make-up cards, 0 to 1,000,000; each makes up one missed day.
    make_up_cards: i32,
}

/// The answer to `checkIn`.
#[derive(Debug, SimpleObject)]
pub struct CheckInPayload {
    /// Whether this was the first of the day.
    outcome: CheckInOutcome,
    /// The day it counts for.
    date: Date,
    /// What the day's check-in earned; repeated, the reward as first paid.
    reward: Reward,
    /// The streak as of now.
    streak: Streak,
    /// The wallet as of now.
    wallet: Wallet,
}

/// Whether a check-in was the first of its day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum CheckInOutcome {
    /// The first of the day.
    CheckedIn,
    /// The day was done before; nothing changed.
    AlreadyCheckedIn,
}

impl From<Earned> for Reward {
    fn from(earned: Earned) -> Reward {
        Reward {
            points: SafeInt::from(earned.points),
            make_up_cards: int(earned.cards),
        }
    }
}

impl From<Earned> for Wallet {
    fn from(held: Earned) -> Wallet {
        Wallet {
            points: SafeInt::from(held.points),
            make_up_cards: int(held.cards),
        }
    }
}

impl Streak {
    /// As callers see it.
    pub fn shown(checkins: &CheckIns, streak: streak::Streak) -> Streak {
        Streak {
            current: int(streak.current),
            longest: int(streak.longest),
            total: int(streak.total),
            exact: !streak.at_least,
            checked_in_today: streak.checked_in_today,
            at_risk: streak.at_risk,
            ends_at: streak.ends_at,
            last_date: streak.last_date.map(Date::from),
            next_reward: Some(checkins.rewards().for_streak(streak.current + 1).into()),
        }
    }

    /// The streak as of `now`.
    pub fn of(checkins: &CheckIns, record: Option<&Record>, now: DateTime<Utc>) -> Streak {
        let today = checkins.zone().date_of(now);
        let streak = record
            .map(|record| record.streak(checkins.zone(), today))
            .unwrap_or_default();
        Streak::shown(checkins, streak)
    }
}

/// The answer to `makeUpCheckIn`.
#[derive(Debug, SimpleObject)]
pub struct MakeUpPayload {
    /// Whether the day was made up, and if not, why.
    outcome: MakeUpOutcome,
    /// The day that was to be made up.
    date: Date,
    /// The milestones that the streak reached by it; nothing if it was not made up.
    reward: Reward,
    /// The streak as of now.
    streak: Streak,
    /// The wallet as of now.
    wallet: Wallet,
}

/// The answer to `grantMakeUpCards` and `adjustWallet`.
#[derive(Debug, SimpleObject)]
pub struct WalletPayload {
    /// Whether the wallet was changed.
    outcome: WalletOutcome,
    /// The wallet as of now.
    wallet: Wallet,
}

/// What became of a change of the wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum WalletOutcome {
    /// It was made.
    Applied,
    /// It had been made before under the same `idempotencyKey`; nothing changed now.
    Replayed,
    /// The wallet holds fewer points than were to be taken; nothing changed.
    Insufficient,
}

impl CheckInPayload {
    /// What a check-in did.
    pub fn shown(checkins: &CheckIns, receipt: &Receipt, now: DateTime<Utc>) -> CheckInPayload {
        let outcome = match receipt.fresh {
            true => CheckInOutcome::CheckedIn,
            false => CheckInOutcome::AlreadyCheckedIn,
        };
        CheckInPayload {
            outcome,
            date: Date::from(receipt.date),
            reward: receipt.paid.into(),
            streak: Streak::of(checkins, Some(&receipt.record), now),
            wallet: receipt.record.wallet.into(),
        }
    }
}

impl MakeUpPayload {
    /// What a make-up of `date` did.
    pub fn shown(checkins: &CheckIns, date: NaiveDate, receipt: &MakeUpReceipt, now: DateTime<Utc>) -> Self {
        let record = receipt.record.as_ref();
        MakeUpPayload {
            outcome: receipt.outcome,
            date: Date::from(date),
            reward: receipt.reward.into(),
            streak: Streak::of(checkins, record, now),
            wallet: record.map(|record| record.wallet).unwrap_or_default().into(),
        }
    }
}

impl WalletPayload {
    /// What became of a change of the wallet.
    pub fn shown(changed: Changed) -> Result<WalletPayload, Error> {
        let (outcome, held) = match changed {
            Changed::Applied(held) => (WalletOutcome::Applied, held),
            Changed::Replayed(held) => (WalletOutcome::Replayed, held),
            Changed::Insufficient(held) => (WalletOutcome::Insufficient, held),
            Changed::Full(held) => {
                return Err(Error::BadUserInput(format!(
                    "a wallet holds at most {MAX_POINTS} points and {MAX_CARDS} make-up cards; this one holds {} and {}",
                    held.points, held.cards
                )));
            }
            Changed::Conflict => {
                return Err(Error::BadUserInput(
                    "KEY_CONFLICT: this idempotencyKey came before with other arguments; nothing was changed"
                        .into(),
                ));
            }
        };
        Ok(WalletPayload {
            outcome,
            wallet: held.into(),
        })
    }
}

impl Calendar {
    /// The month of a user.
    pub fn shown(user: &UserId, month: Month, days: &[Day]) -> Calendar {
        let done = |day: &&Day| matches!(day.state, DayState::CheckedIn | DayState::MadeUp);
        Calendar {
            user: User::from(user),
            month: CalendarMonth::from(month),
            checked_in_days: days.iter().filter(done).count() as i32,
            days: days.iter().map(CalendarDay::from).collect(),
        }
    }
}

impl From<&Day> for CalendarDay {
    fn from(day: &Day) -> CalendarDay {
        CalendarDay {
            date: Date::from(day.date),
            state: day.state,
            can_make_up: day.can_make_up,
        }
    }
}

impl From<(NaiveDate, CheckInKind)> for CheckIn {
    fn from((date, kind): (NaiveDate, CheckInKind)) -> CheckIn {
        CheckIn {
            date: Date::from(date),
            kind,
        }
    }
}
