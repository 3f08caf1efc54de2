//! Places and pages of places as they are shown.

use std::sync::Arc;

use async_graphql::{Context, InputType, Object, SelectionField, SimpleObject};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use super::super::pages::Page;
use super::super::ranking::{self, Member};
use super::super::standings::Standing;
use super::super::{Board, RankMethod};
use crate::error::Error;
use crate::graphql::AppContext;
use crate::graphql::page_info::PageInfo;
use crate::graphql::scalars::SafeInt;
use crate::graphql::shared::shared;
use crate::ids::UserId;
use crate::user::graphql::User;

/// Whether some DENSE rank is selected below the field of `ctx`. Where partitions have to be merged for it, it is counted
/// by the field that may be null, so that the rank, which may not, cannot fail.
pub fn asks_for_dense(ctx: &Context<'_>, board: &Board) -> bool {
    fn below(field: SelectionField<'_>, default: RankMethod) -> bool {
        field.selection_set().any(|field| match field.name() {
            "rank" => method(field).unwrap_or(default) == RankMethod::Dense,
            _ => below(field, default),
        })
    }
    fn method(field: SelectionField<'_>) -> Option<RankMethod> {
        let (_, method) = field
            .arguments()
            .ok()?
            .into_iter()
            .find(|(name, _)| name == "method")?;
        RankMethod::parse(Some(method)).ok()
    }
    below(ctx.field(), board.rank_method)
}

/// Standings of one page as they are shown, with what their ranks need.
pub async fn shown(
    ctx: &Context<'_>,
    board: &Arc<Board>,
    standings: Vec<Standing>,
) -> Result<Vec<StandingShown>, Error> {
    if asks_for_dense(ctx, board) {
        ctx.app().boards.count_dense(board, &standings).await?;
    }
    Ok(standings
        .into_iter()
        .map(|standing| StandingShown::new(board.clone(), standing))
        .collect())
}

/// Someone's place on a board.
#[derive(Clone)]
pub struct StandingShown {
    board: Arc<Board>,
    standing: Standing,
}

impl StandingShown {
    /// A place on `board`.
    pub fn new(board: Arc<Board>, standing: Standing) -> StandingShown {
        StandingShown { board, standing }
    }

    /// Who stands there.
    pub fn user_id(&self) -> &UserId {
        &self.standing.user
    }
}

/// Someone's place on a board.
#[Object(name = "Standing", directive = shared::apply(None))]
impl StandingShown {
    /// Who stands there.
    async fn user(&self) -> User {
        User::from(&self.standing.user)
    }

    /// The place, from 1.
    async fn rank(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "How equals are numbered; left out: the board's own way.")] method: Option<
            RankMethod,
        >,
    ) -> async_graphql::Result<SafeInt> {
        let method = method.unwrap_or(self.board.rank_method);
        let rank = ctx.app().boards.rank(&self.board, &self.standing, method).await;
        Ok(rank.map_err(Error::from)?.into())
    }

    /// The points; of heat, what is left of them now.
    async fn points(&self) -> SafeInt {
        SafeInt::from(self.standing.points)
    }

    /// When the points were reached: approximate, never later than now. Null where ties do not go by time.
    async fn reached_at(&self) -> Option<DateTime<Utc>> {
        self.standing.reached_at
    }

    /// 100 times the share of participants ranked at or below: above 0, and 100 for the best.
    async fn percentile(&self) -> f64 {
        ranking::percentile(
            &self.standing.ahead,
            self.board.rank_method,
            self.standing.participants,
        )
    }
}

/// A page of a board.
#[derive(SimpleObject)]
#[graphql(directive = shared::apply(None))]
pub struct StandingConnection {
    /// The rows with their cursors, best first.
    edges: Vec<StandingEdge>,
    /// The rows, best first.
    nodes: Vec<StandingShown>,
    /// Where the page lies.
    page_info: PageInfo,
    /// How many rows all pages have together: those within `minPoints` and `maxPoints`.
    total_count: SafeInt,
}

/// A row with its cursor.
#[derive(SimpleObject)]
#[graphql(directive = shared::apply(None))]
pub struct StandingEdge {
    /// Names the row's position: the score and the user, so that what moves elsewhere does not move it.
    cursor: String,
    /// Who stands there, and how.
    node: StandingShown,
}

impl StandingConnection {
    /// A page of `board`.
    pub fn new(board: &Arc<Board>, page: Page) -> StandingConnection {
        let edges: Vec<StandingEdge> = page
            .standings
            .into_iter()
            .map(|standing| StandingEdge {
                cursor: cursor(&standing),
                node: StandingShown::new(board.clone(), standing),
            })
            .collect();
        let cursors = edges.iter().map(|edge| edge.cursor.as_str());
        StandingConnection {
            page_info: PageInfo::of(page.has_previous, page.has_next, cursors),
            total_count: page.total.into(),
            nodes: edges.iter().map(|edge| edge.node.clone()).collect(),
            edges,
        }
    }
}

fn cursor(standing: &Standing) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {}", standing.key, standing.user))
}

/// The position that a cursor names.
pub fn position(cursor: &str) -> Result<Member, Error> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let (key, user) = text.split_once(' ')?;
        let key: f64 = key.parse().ok().filter(|key: &f64| key.is_finite())?;
        Some(Member {
            key,
            user: UserId::parse(user).ok()?,
        })
    };
    read().ok_or_else(|| Error::BadUserInput(format!("{cursor:?} is no cursor of this connection")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cursor_is_refused() {
        let member = position(&URL_SAFE_NO_PAD.encode("-12.5 amy")).unwrap();
        assert_eq!((member.key, member.user.as_str()), (-12.5, "amy"));
        for bad in [
            "",
            "%",
            "amy",
            &URL_SAFE_NO_PAD.encode("amy"),
            &URL_SAFE_NO_PAD.encode("NaN amy"),
            &URL_SAFE_NO_PAD.encode("1 a b"),
        ] {
            assert!(position(bad).is_err(), "{bad}");
        }
    }
}
