//! The face of figures, for reading: `dayStats`, `dayStatsRange`, `activeUsers`, `retention`, `retentionTable`.

use async_graphql::{Context, ID, Object, SimpleObject};

use super::range::{return_days, table};
use super::store::{Day, Returns};
use super::{Activity, DayMatch};
use crate::error::Error;
use crate::graphql::cost;
use crate::graphql::rules::{Askers, allowed};
use crate::graphql::scalars::{Date, SafeInt, int};
use crate::graphql::{AppContext, access, answer};
use crate::ids::UserId;

/// The most users of `among`.
const MAX_AMONG: usize = 1_000;

/// What is counted of one day.
#[derive(Debug, Clone, SimpleObject)]
pub struct DayStats {
    /// Which day it is.
    date: Date,
    /// How many users checked in for it.
    check_ins: SafeInt,
    /// How many users were active on it: checked in, or were seen by a heartbeat.
    active: SafeInt,
    /// How many users are known now: whoever has ever checked in, scored or been seen.
    known_users: SafeInt,
    /// `checkIns` divided by `active`, 0 or more; null if nobody was active. Above 1 where days were made up by users who were not.
    check_in_rate: Option<f64>,
}

impl From<Day> for DayStats {
    fn from(day: Day) -> DayStats {
        DayStats {
            date: day.date.into(),
            check_ins: day.check_ins.into(),
            active: day.active.into(),
            known_users: day.known_users.into(),
            check_in_rate: share(day.check_ins, day.active),
        }
    }
}

/// How many of those who were active on one day came back.
#[derive(Debug, SimpleObject)]
pub struct Retention {
    /// The day on which all of them were active.
    cohort: Date,
    /// How many users they are.
    size: SafeInt,
    /// How many came back, in the order asked for.
    days: Vec<RetentionDay>,
}

/// How many of a cohort were active one later day.
#[derive(Debug, SimpleObject)]
pub struct RetentionDay {
    /// How many days after the cohort's: 0 to 366.
    day: i32,
    /// How many were active on that day; null: it has not come yet.
    returned: Option<SafeInt>,
    /// Their share of the cohort, 0 to 1; null: the day has not come yet, or the cohort is empty.
    rate: Option<f64>,
}

impl From<Returns> for Retention {
    fn from(returns: Returns) -> Retention {
        let day = |(day, returned): (u64, Option<u64>)| RetentionDay {
            day: int(day as u32), // at most 366
            returned: returned.map(SafeInt::from),
            rate: returned.and_then(|returned| share(returned, returns.size)),
        };
        Retention {
            cohort: returns.cohort.into(),
            size: returns.size.into(),
            days: returns.returned.into_iter().map(day).collect(),
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Reading figures. For ANALYST, SERVICE and ADMIN. Days go back as far as `analytics.keep_days`.
#[derive(Default)]
pub struct FiguresQuery;

#[Object]
impl FiguresQuery {
    /// What is counted of one day. For ANALYST and up.
    #[graphql(directive = allowed::apply(Askers::Analysts))]
    async fn day_stats(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Which day, within `analytics.keep_days`; left out: today.")] on: Option<Date>,
    ) -> Option<async_graphql::Result<DayStats>> {
        answer(async {
            access::allowed(ctx)?;
            let figures = &ctx.app().figures;
            let kept = figures.kept(ctx.now());
            let on = on.map(|on| on.get()).transpose()?.unwrap_or(kept.today);
            let days = figures.days(&[kept.day("on", on)?]).await?;
            let day = days.into_iter().next().map(DayStats::from);
            day.ok_or_else(|| Error::Internal("a day without counts".into()))
        })
        .await
    }

    /// What is counted of each day of a range, at most 366 days; a day that the time zone skipped is left out. For
    /// ANALYST and up.
    #[graphql(directive = allowed::apply(Askers::Analysts), complexity = "cost::of_list(100, child_complexity)")]
    async fn day_stats_range(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The first day, within `analytics.keep_days`.")] from: Date,
        #[graphql(desc = "The last day, included; today or before.")] to: Date,
    ) -> Option<async_graphql::Result<Vec<DayStats>>> {
        answer(async {
            access::allowed(ctx)?;
            let figures = &ctx.app().figures;
            let kept = figures.kept(ctx.now());
            let dates = kept.range(figures.zone(), from.get()?, to.get()?)?;
            let days = figures.days(&dates).await?;
            Ok(days.into_iter().map(DayStats::from).collect())
        })
        .await
    }

    /// How many users were active on the days of a range, at most 366 days; each counts once. For ANALYST and up.
    #[graphql(directive = allowed::apply(Askers::Analysts))]
    async fn active_users(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The first day, within `analytics.keep_days`.")] from: Date,
        #[graphql(desc = "The last day, included; today or before.")] to: Date,
        #[graphql(desc = "What counts as active.", default_with = "Activity::CheckIn")] activity: Activity,
        #[graphql(
            name = "match",
            desc = "On at least one day, or on all.",
            default_with = "DayMatch::Any"
        )]
        wanted: DayMatch,
        #[graphql(desc = "Only of these users, up to 1,000; left out: of all.")] among: Option<Vec<ID>>,
    ) -> Option<async_graphql::Result<SafeInt>> {
        answer(async {
            access::allowed(ctx)?;
            let figures = &ctx.app().figures;
            let kept = figures.kept(ctx.now());
            let dates = kept.range(figures.zone(), from.get()?, to.get()?)?;
            let count = match among.map(users).transpose()? {
                None => figures.active(&dates, activity, wanted).await?,
                Some(users) => figures.active_among(&dates, activity, wanted, users).await?,
            };
            Ok(count.into())
        })
        .await
    }

    /// How many of those who were active on one day were active again later. For ANALYST and up.
    #[graphql(directive = allowed::apply(Askers::Analysts), complexity = "cost::of_each(&days, child_complexity)")]
    async fn retention(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The day on which all of them were active, within `analytics.keep_days`.")]
        cohort: Date,
        #[graphql(desc = "How many days later to look, each 0 to 366, up to 100 of them.")] days: Vec<i32>,
        #[graphql(desc = "What counts as active.", default_with = "Activity::CheckIn")] activity: Activity,
    ) -> Option<async_graphql::Result<Retention>> {
        answer(async {
            access::allowed(ctx)?;
            let figures = &ctx.app().figures;
            let kept = figures.kept(ctx.now());
            let cohort = kept.day("cohort", cohort.get()?)?;
            let days = return_days(&days)?;
            let returns = figures.returns(&[cohort], &days, activity, kept.today).await?;
            let returns = returns.into_iter().next().map(Retention::from);
            returns.ok_or_else(|| Error::Internal("a cohort without counts".into()))
        })
        .await
    }

    /// The retention of each day of a range, at most 366 days and 2,000 cells. For ANALYST and up.
    #[graphql(directive = allowed::apply(Askers::Analysts), complexity = "100 + 10 * cost::of_each(&days, child_complexity)")]
    async fn retention_table(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The day of the first cohort, within `analytics.keep_days`.")] from: Date,
        #[graphql(desc = "The day of the last cohort, included; today or before.")] to: Date,
        #[graphql(desc = "How many days later to look, each 0 to 366, up to 100 of them.")] days: Vec<i32>,
        #[graphql(desc = "What counts as active.", default_with = "Activity::CheckIn")] activity: Activity,
    ) -> Option<async_graphql::Result<Vec<Retention>>> {
        answer(async {
            access::allowed(ctx)?;
            let figures = &ctx.app().figures;
            let kept = figures.kept(ctx.now());
            let cohorts = kept.range(figures.zone(), from.get()?, to.get()?)?;
            let days = return_days(&days)?;
            table(cohorts.len(), days.len())?;
            let rows = figures.returns(&cohorts, &days, activity, kept.today).await?;
            Ok(rows.into_iter().map(Retention::from).collect())
        })
        .await
    }
}

fn users(ids: Vec<ID>) -> Result<Vec<UserId>, Error> {
    if ids.len() > MAX_AMONG {
        return Err(Error::BadUserInput(format!(
            "among has at most {MAX_AMONG} users, and {} were given",
            ids.len()
        )));
    }
    let users: Result<Vec<UserId>, _> = ids.iter().map(|id| UserId::parse(id)).collect();
    Ok(users?)
}
