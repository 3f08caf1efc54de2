//! Where a make-up counts, and what it leaves as it is.

use serde_json::Value;
use tallyboard::config::{Board as Configured, Settings};
use tallyboard::day::Period;
use tallyboard::leaderboard::TieBreak;

use super::{in_march, milestone};
use crate::harness::*;

fn fed(settings: &mut Settings) {
    settings.checkin.count_board = "count".into();
    settings.checkin.points_board = "points".into();
    settings.checkin.milestone = vec![milestone(4, 100, 0)];
    settings.board[0].max_points = 60;
    settings.board.push(Configured {
        id: "count".into(),
        tie_break: TieBreak::None,
        windows: vec![7],
        half_life_hours: 24.0,
        ..Default::default()
    });
    assert_eq!(settings.board[1].periods[0], Period::Day);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_make_up_counts_for_its_day_where_that_is_still_open_and_leaves_the_rest_as_it_is() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).with(fed).await;
        let amy = app.user("amy");
        let counted = async |span: &Value, on: &str| amy.board("count", span, Some(date(on))).await.order();
        // Sunday the 7th was missed; the 8th is a Monday.
        in_march(&app, "amy", [4, 5, 6, 8]).await;
        app.service().grant("amy", 1, None).await;
        let window = amy.board("count", &last_days(7), None).await;
        let hot = amy.place("count", &heat(), "amy").await.unwrap().points;
        let active = app.active("2027-03-07").await;

        let made_up = amy.make_up("2027-03-07").await;
        assert_eq!((made_up.outcome.as_str(), made_up.streak.current), ("MADE_UP", 5));
        let amys = |points: i64| vec![("amy".to_owned(), points)];
        assert_eq!(counted(&period("DAY"), "2027-03-07").await, [], "a closed day");
        assert_eq!(
            counted(&period("WEEK"), "2027-03-07").await,
            amys(3),
            "a closed week"
        );
        assert_eq!(
            counted(&period("DAY"), "2027-03-08").await,
            amys(1),
            "another day"
        );
        assert_eq!(
            counted(&period("WEEK"), "2027-03-08").await,
            amys(1),
            "another week"
        );
        assert_eq!(counted(&period("MONTH"), "2027-03-08").await, amys(5));
        assert_eq!(amy.top("count", "ALL_TIME", 9).await.order(), [("amy", 5)]);
        assert_eq!(amy.board("count", &last_days(7), None).await, window);
        assert_eq!(amy.place("count", &heat(), "amy").await.unwrap().points, hot);
        assert_eq!(app.checked_in("2027-03-07").await, (1, 1));
        assert_eq!(app.active("2027-03-07").await, active, "nobody was there");
        // The points board is full, which holds nothing up: the wallet gets it all.
        assert_eq!((made_up.reward.points, made_up.wallet.points), (100, 140));
        assert_eq!(amy.top("points", "ALL_TIME", 9).await.order(), [("amy", 60)]);
        app.set("2027-03-09T12:00:00Z");
        let receipt = amy.check_in().await;
        assert_eq!(
            (receipt.outcome.as_str(), receipt.wallet.points),
            ("CHECKED_IN", 150)
        );
    }
}

impl TestApp {
    /// Bits and counter of a day's check-ins, over all partitions.
    async fn checked_in(&self, date: &str) -> (u64, u64) {
        (
            self.bits(&format!("*:day:{date}:*")).await,
            self.sum(&format!("*:day-count:{date}")).await,
        )
    }

    /// Bits and counter of a day's activity.
    async fn active(&self, date: &str) -> (u64, u64) {
        (
            self.bits(&format!("*:active:{date}:*")).await,
            self.sum(&format!("*:active-count:{date}")).await,
        )
    }

    async fn bits(&self, pattern: &str) -> u64 {
        let mut redis = self.redis().await;
        let mut bits = 0;
        for (key, _) in self.ttls(pattern).await {
            let count: u64 = redis::cmd("BITCOUNT")
                .arg(key)
                .query_async(&mut redis)
                .await
                .unwrap();
            bits += count;
        }
        bits
    }

    async fn sum(&self, pattern: &str) -> u64 {
        let mut redis = self.redis().await;
        let mut sum = 0;
        for (key, _) in self.ttls(pattern).await {
            let count: u64 = redis::cmd("GET").arg(key).query_async(&mut redis).await.unwrap();
            sum += count;
        }
        sum
    }
}
