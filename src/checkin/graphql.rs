//! The face of check-ins: `calendar`, `checkIns`, `checkInsKnownSince`, `streak`, `wallet`, `checkIn`, `makeUpCheckIn`, `grantMakeUpCards`,
//! `adjustWallet`. What they answer with is [`answers`]'.

pub mod answers;

use async_graphql::{Context, ID, Object};
use chrono::NaiveDate;

use super::calendar;
use super::wallet::Change;
use crate::day::{Month, Zone};
use crate::error::Error;
use crate::graphql::cost;
use crate::graphql::rules::{Askers, allowed};
use crate::graphql::scalars::{CalendarMonth, Date, SafeInt};
use crate::graphql::{AppContext, access, answer, answer_optional};
use crate::ids::UserId;
use crate::keyspace::Operation;
use answers::{Calendar, CheckIn, CheckInPayload, MakeUpPayload, Streak, Wallet, WalletPayload};

/// The longest range of `checkIns`, in days: three years.
const MAX_RANGE_DAYS: i64 = 1_100;

/// The most make-up cards of one grant.
const MAX_CARDS_A_GRANT: u32 = 1_000;

/// The longest reason of `adjustWallet`, in bytes.
const MAX_REASON: usize = 500;

/// Reading check-ins: one's own, or anybody's for a backend.
#[derive(Default)]
pub struct CheckInQuery;

#[Object]
impl CheckInQuery {
    /// One month of a user's check-ins. For the user, and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner), complexity = "cost::of_list(31, child_complexity)")]
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
            let (record, done) = checkins.month(&user, month, today).await?;
            let (window, since) = (checkins.make_up_window(today), checkins.kept_since(today));
            let days = calendar::days(checkins.zone(), month, &window, since, record.as_ref(), &done);
            Ok(Calendar::shown(&user, month, &days))
        })
        .await
    }

    /// A user's check-ins of a range of dates, ascending. Null without an error if some of those days are unknown, since
    /// their year is no longer kept: ask from `checkInsKnownSince` on. For the user, and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner), complexity = "cost::of_list(366, child_complexity)")]
    async fn check_ins(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose; left out: the viewer's. Another's only for SERVICE.")] user_id: Option<ID>,
        #[graphql(desc = "The first date, not after `to`.")] from: Date,
        #[graphql(desc = "The last date, included; at most 1,100 days from the first.")] to: Date,
    ) -> Option<async_graphql::Result<Vec<CheckIn>>> {
        answer_optional(async {
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
            let today = ctx.app().zone.date_of(ctx.now());
            let dates = ctx.app().checkins.dates(&user, from, to, today).await?;
            Ok(dates.map(|dates| dates.into_iter().map(CheckIn::from).collect()))
        })
        .await
    }

    /// The first date from which on each day of a user is known; `checkIns`, `calendar` and `streak(on:)` know every day
    /// since. Null without an error if nothing was lost: then they know every day there ever was. For the user, and
    /// for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner))]
    async fn check_ins_known_since(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose; left out: the viewer's. Another's only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<Date>> {
        answer_optional(async {
            let user = access::acting_for(ctx, user_id)?;
            let today = ctx.app().zone.date_of(ctx.now());
            let since = ctx.app().checkins.known_since(&user, today).await?;
            Ok(since.map(Date::from))
        })
        .await
    }

    /// A user's streak as of now, or as it stood at the end of a past day. Of a past day there is no grace: the run has to
    /// end on that very day. Days that were made up since count. Null without an error if that day is unknown, since its
    /// year is no longer kept; see `checkInsKnownSince`. For the user, and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner))]
    async fn streak(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose; left out: the viewer's. Another's only for SERVICE.")] user_id: Option<ID>,
        #[graphql(desc = "At the end of which day; left out: as of now. Not in the future.")] on: Option<
            Date,
        >,
    ) -> Option<async_graphql::Result<Streak>> {
        answer_optional(async {
            let user = access::acting_for(ctx, user_id)?;
            let (checkins, now) = (&ctx.app().checkins, ctx.now());
            let today = checkins.zone().date_of(now);
            let on = on.map_or(Ok(today), |on| a_day(checkins.zone(), &on))?;
            if on > today {
                return Err(Error::BadUserInput(format!(
                    "on ({on}) lies in the future: today is {today}"
                )));
            }
            if on == today {
                let record = checkins.record(&user).await?;
                return Ok(Some(Streak::of(checkins, record.as_ref(), now)));
            }
            let streak = checkins.streak_on(&user, on, today).await?;
            Ok(streak.map(|streak| Streak::shown(checkins, streak)))
        })
        .await
    }

    /// What a user holds. For the user, and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner))]
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

/// Checking in, making up, and the wallet.
#[derive(Default)]
pub struct CheckInMutation;

#[Object]
impl CheckInMutation {
    /// Check in for today. A second call the same day changes nothing and says so. For the user, and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner))]
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

    /// Make a missed day up: it counts as checked in, and the runs on both sides become one. It costs one make-up card,
    /// and earns what milestones the streak reaches by it, but no points for the day and no weekly bonus. For the user,
    /// and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner))]
    async fn make_up_check_in(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The missed day; how far back it may lie is configured (`makeup.window_days`).")]
        date: Date,
        #[graphql(desc = "Who; left out: the viewer. Another only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<MakeUpPayload>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let (checkins, now) = (&ctx.app().checkins, ctx.now());
            let date = a_day(checkins.zone(), &date)?;
            let receipt = checkins.make_up(&user, date, now).await?;
            Ok(MakeUpPayload::shown(checkins, date, &receipt, now))
        })
        .await
    }

    /// Give a user make-up cards. For SERVICE.
    #[graphql(directive = allowed::apply(Askers::Backends))]
    async fn grant_make_up_cards(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "To whom they are given.")] user_id: ID,
        #[graphql(desc = "How many, 1 to 1,000. A wallet holds at most 1,000,000.")] cards: i32,
        #[graphql(
            desc = "Names this grant, so that sending it again within 24 hours does not make it again; 1 to 255 \
                  bytes. The same key with other arguments is refused."
        )]
        idempotency_key: Option<String>,
    ) -> Option<async_graphql::Result<WalletPayload>> {
        answer(async {
            access::allowed(ctx)?;
            let user = UserId::parse(&user_id)?;
            let granted = u32::try_from(cards)
                .ok()
                .filter(|cards| (1..=MAX_CARDS_A_GRANT).contains(cards));
            let Some(cards) = granted else {
                return Err(Error::BadUserInput(format!(
                    "cards ({cards}) is not within 1 to {MAX_CARDS_A_GRANT}"
                )));
            };
            let arguments = [cards.to_string()];
            let operation = keyed(ctx, idempotency_key, "grantMakeUpCards", &user, &arguments)?;
            let change = Change { cards, points: 0 };
            let changed = ctx
                .app()
                .checkins
                .change_wallet(&user, change, &operation)
                .await?;
            tracing::info!(%user, cards, ?changed, "make-up cards granted");
            WalletPayload::shown(changed)
        })
        .await
    }

    /// Add points to a user's wallet, or take them out. Boards stay as they are. For SERVICE.
    #[graphql(directive = allowed::apply(Askers::Backends))]
    async fn adjust_wallet(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose wallet it is.")] user_id: ID,
        #[graphql(
            desc = "How many to add; negative ones are taken out, if that many are there. A wallet holds 0 to 2^53 - 1."
        )]
        points: SafeInt,
        #[graphql(desc = "Why, for the server's log; up to 500 bytes.")] reason: Option<String>,
        #[graphql(
            desc = "Names this change, so that sending it again within 24 hours does not make it again; 1 to 255 \
                  bytes. The same key with other arguments is refused."
        )]
        idempotency_key: Option<String>,
    ) -> Option<async_graphql::Result<WalletPayload>> {
        answer(async {
            access::allowed(ctx)?;
            let (user, points) = (UserId::parse(&user_id)?, points.get()?);
            let reason = reason.unwrap_or_default();
            if reason.len() > MAX_REASON {
                return Err(Error::BadUserInput(format!(
                    "a reason has at most {MAX_REASON} bytes, this one has {}",
                    reason.len()
                )));
            }
            let arguments = [points.to_string(), reason.clone()];
            let operation = keyed(ctx, idempotency_key, "adjustWallet", &user, &arguments)?;
            let change = Change { points, cards: 0 };
            let changed = ctx
                .app()
                .checkins
                .change_wallet(&user, change, &operation)
                .await?;
            tracing::info!(%user, points, reason = ?reason, ?changed, "wallet adjusted");
            WalletPayload::shown(changed)
        })
        .await
    }
}

/// A date that took place in the zone.
fn a_day(zone: &Zone, date: &Date) -> Result<NaiveDate, Error> {
    let date = date.get()?;
    match zone.exists(date) {
        true => Ok(date),
        false => Err(Error::BadUserInput(format!(
            "{date} is no day in {}: clocks there skipped it",
            zone.name()
        ))),
    }
}

fn keyed(
    ctx: &Context<'_>,
    key: Option<String>,
    mutation: &str,
    user: &UserId,
    arguments: &[String],
) -> Result<Operation, Error> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let caller = access::caller(ctx).name();
    Ok(Operation::keyed(
        key.as_deref(),
        &caller,
        mutation,
        user,
        &arguments,
        ctx.now(),
    )?)
}
