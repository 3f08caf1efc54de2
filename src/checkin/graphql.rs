//! The face of check-ins: `calendar`, `checkIns`, `streak`, `checkIn`.

use async_graphql::{Context, Enum, ID, Object, SimpleObject};
use chrono::{DateTime, Utc};

use super::calendar::{self, DayState};
use super::store::Receipt;
use super::{CheckIns, Record, Reward as Earned, streak};
use crate::day::Month;
use crate::error::Error;
use crate::graphql::scalars::{CalendarMonth, Date, SafeInt, int};
use crate::graphql::{AppContext, access, answer};
use crate::keyspace::Operation;
use crate::user::graphql::User;

/// The longest range of `checkIns`, in days: three years.
const MAX_RANGE_DAYS: i64 = 1_100;

/// One user's month.
#[derive(Debug, SimpleObject)]
pub struct Calendar {
    /// Whose.
    user: User,
    /// Which month.
    month: CalendarMonth,
    /// Its days in order; a date that the time zone skipped is left out.
    days: Vec<CalendarDay>,
    /// How many of them have a check-in.
    checked_in_days: i32,
}

/// One day of a calendar.
#[derive(Debug, SimpleObject)]
pub struct CalendarDay {
    /// Which.
    date: Date,
    /// What is known of it.
    state: DayState,
}

/// One check-in.
#[derive(Debug, SimpleObject)]
pub struct CheckIn {
    /// The day it counts for.
    date: Date,
    /// How it came about.
    kind: CheckInKind,
}

/// How a check-in came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum CheckInKind {
    /// On the day itself.
    Normal,
}

/// Days in a row.
#[derive(Debug, SimpleObject)]
pub struct Streak {
    /// Days in a row up to today, or up to yesterday while today is open.
    current: i32,
    /// The longest ever.
    longest: i32,
    /// Check-ins ever.
    total: i32,
    /// Whether today is done.
    checked_in_today: bool,
    /// Whether the streak ends at `endsAt` unless the user checks in.
    at_risk: bool,
    /// When the streak ends unless the user checks in again; null if there is none.
    ends_at: Option<DateTime<Utc>>,
    /// The newest check-in; null before the first.
    last_date: Option<Date>,
    /// What the next check-in would earn.
    next_reward: Option<Reward>,
}

/// Points and make-up cards that were earned.
#[derive(Debug, SimpleObject)]
pub struct Reward {
    /// Points.
    points: SafeInt,
    /// Make-up cards.
    make_up_cards: i32,
}

/// What a user holds.
#[derive(Debug, SimpleObject)]
pub struct Wallet {
    /// Points.
    points: SafeInt,
    /// Make-up cards.
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
    fn shown(checkins: &CheckIns, streak: streak::Streak) -> Streak {
        Streak {
            current: int(streak.current),
            longest: int(streak.longest),
            total: int(streak.total),
            checked_in_today: streak.checked_in_today,
            at_risk: streak.at_risk,
            ends_at: streak.ends_at,
            last_date: streak.last_date.map(Date::from),
            next_reward: Some(checkins.rewards().for_streak(streak.current + 1).into()),
        }
    }

    fn of(checkins: &CheckIns, record: Option<&Record>, now: DateTime<Utc>) -> Streak {
        let today = checkins.zone().date_of(now);
        let streak = record
            .map(|record| record.streak(checkins.zone(), today))
            .unwrap_or_default();
        Streak::shown(checkins, streak)
    }
}

impl CheckInPayload {
    fn shown(checkins: &CheckIns, receipt: &Receipt, now: DateTime<Utc>) -> CheckInPayload {
        let outcome = match receipt.fresh {
            true => CheckInOutcome::CheckedIn,
            false => CheckInOutcome::AlreadyCheckedIn,
        };
        CheckInPayload {
            outcome,
            date: Date::from(receipt.record.last),
            reward: receipt.record.paid.into(),
            streak: Streak::of(checkins, Some(&receipt.record), now),
            wallet: receipt.record.wallet.into(),
        }
    }
}

/// Reading check-ins: one's own, or anybody's for a backend.
#[derive(Default)]
pub struct CheckInQuery;

#[Object]
impl CheckInQuery {
    /// One month of a user's check-ins.
    async fn calendar(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose; left out: the viewer's. Another's only for SERVICE.")] user_id: Option<ID>,
        #[graphql(desc = "Which month; left out: the one of today.")] month: Option<CalendarMonth>,
    ) -> Option<async_graphql::Result<Calendar>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let checkins = &ctx.app().checkins;
            let today = checkins.zone().date_of(ctx.now());
            let month = month.map_or(Ok(Month::of(today)), |month| month.get())?;
            let (record, done) = checkins.month(&user, month).await?;
            let since = checkins.kept_since(today);
            let days = calendar::days(checkins.zone(), month, today, since, record.as_ref(), &done);
            Ok(Calendar {
                user: User::from(&user),
                month: CalendarMonth::from(month),
                checked_in_days: days.iter().filter(|day| day.state == DayState::CheckedIn).count() as i32,
                days: days
                    .iter()
                    .map(|day| CalendarDay {
                        date: Date::from(day.date),
                        state: day.state,
                    })
                    .collect(),
            })
        })
        .await
    }

    /// A user's check-ins of a range of dates, ascending. Years that are no longer kept show none.
    async fn check_ins(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose; left out: the viewer's. Another's only for SERVICE.")] user_id: Option<ID>,
        #[graphql(desc = "The first date.")] from: Date,
        #[graphql(desc = "The last date, included; at most 1,100 days from the first.")] to: Date,
    ) -> Option<async_graphql::Result<Vec<CheckIn>>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let (from, to) = (from.get()?, to.get()?);
            if from > to {
                return Err(Error::BadUserInput(format!(
                    "from ({}) lies after to ({})",
                    from, to
                )));
            }
            if (to - from).num_days() >= MAX_RANGE_DAYS {
                return Err(Error::BadUserInput(format!(
                    "a range has at most {MAX_RANGE_DAYS} days"
                )));
            }
            let dates = ctx.app().checkins.dates(&user, from, to).await?;
            Ok(dates
                .into_iter()
                .map(|date| CheckIn {
                    date: Date::from(date),
                    kind: CheckInKind::Normal,
                })
                .collect())
        })
        .await
    }

    /// A user's streak as of now.
    async fn streak(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose; left out: the viewer's. Another's only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<Streak>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let checkins = &ctx.app().checkins;
            let record = checkins.record(&user).await?;
            Ok(Streak::of(checkins, record.as_ref(), ctx.now()))
        })
        .await
    }

    /// What a user holds.
    async fn wallet(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose; left out: the viewer's. Another's only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<Wallet>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let record = ctx.app().checkins.record(&user).await?;
            Ok(record.map(|record| record.wallet).unwrap_or_default().into())
        })
        .await
    }
}

/// Checking in.
#[derive(Default)]
pub struct CheckInMutation;

#[Object]
impl CheckInMutation {
    /// Check in for today. A second call the same day changes nothing and says so.
    async fn check_in(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Who; left out: the viewer. Another only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<CheckInPayload>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let (checkins, now) = (&ctx.app().checkins, ctx.now());
            let receipt = checkins.check_in(&user, now, &Operation::unique(now)).await?;
            Ok(CheckInPayload::shown(checkins, &receipt, now))
        })
        .await
    }
}
