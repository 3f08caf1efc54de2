//! What a subscriber of today's figures gets: the figures, again whenever they have changed.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::{Context, Subscription};
use futures::Stream;
use tokio::sync::watch;

use super::graphql::DayStats;
use super::store::Day;
use crate::app::App;
use crate::error::Error;
use crate::graphql::access;
use crate::graphql::rules::{Askers, allowed};
use crate::live::{Followed, Pulse, Step, UpdateCause, follow};
use crate::presence::live::EVERY_SECOND;

struct Today {
    app: Arc<App>,
    /// Nothing but time wakes it: check-ins and heartbeats are far too many to tell of each.
    still: watch::Sender<Pulse>,
}

impl Followed for Today {
    type State = Day;
    type Update = DayStats;

    fn pulses(&self) -> watch::Receiver<Pulse> {
        self.still.subscribe()
    }

    fn drifts(&self) -> Option<Duration> {
        Some(EVERY_SECOND)
    }

    async fn read(&self, _before: Option<(&Day, u64)>, _pulse: &Pulse) -> Result<Day, Error> {
        let today = self.app.zone.date_of(self.app.clock.now());
        let day = self.app.figures.days(&[today]).await?.pop();
        day.ok_or_else(|| Error::Internal("a day without counts".into()))
    }

    fn step(&self, before: &Day, now: &Day) -> Step {
        if now == before {
            Step::Same
        } else if now.date != before.date {
            Step::Anew(UpdateCause::PeriodStarted)
        } else {
            Step::Changed
        }
    }

    fn update(&self, _cause: UpdateCause, _before: Option<&Day>, now: &Day) -> DayStats {
        (*now).into()
    }
}

/// Watching figures. For ANALYST, SERVICE and ADMIN.
#[derive(Default)]
pub struct FiguresSubscription;

#[Subscription]
impl FiguresSubscription {
    /// What is counted of today: as it stands first, then whenever it has changed, looked at once a second. When the
    /// day turns it goes on with the new one. For ANALYST and up.
    #[graphql(directive = allowed::apply(Askers::Analysts))]
    async fn day_stats_changed(
        &self,
        ctx: &Context<'_>,
    ) -> async_graphql::Result<impl Stream<Item = DayStats> + use<>> {
        access::allowed(ctx)?;
        let today = Today {
            app: ctx.data_unchecked::<Arc<App>>().clone(),
            still: watch::channel(Pulse::default()).0,
        };
        Ok(follow(ctx, today))
    }
}
