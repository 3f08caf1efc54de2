//! The clients that frontends use, run by Node: each keeps the same promises.
//!
//! [`script`] runs and drives one of `tests/clients`, [`promises`] has what they must do, and the table below says which
//! client must do what. [`subscribe`] is the one for people at a terminal, [`samples`] are those of the documentation.

mod promises;
mod samples;
mod script;
mod subscribe;

pub use script::{Client, Script, home};

/// A test for each client and promise: `clients::urql::it_comes_back_after_a_restart`.
macro_rules! keeps {
    ($($name:ident => $client:expr, [$($promise:ident),+ $(,)?];)+) => {$(
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $promise() {
                    crate::clients::promises::$promise($client).await;
                }
            )+
        }
    )+};
}

keeps! {
    graphql_ws => crate::clients::Client::GraphqlWs, [
        it_gets_the_state_then_changes_until_it_completes,
        a_completed_subscription_leaves_the_others_alone,
        its_variables_are_used,
        a_fragment_at_the_root_is_followed,
        queries_and_mutations_go_the_same_way,
        a_wrong_document_is_an_error_and_nothing_more,
        it_comes_back_after_a_restart,
    ];
    urql => crate::clients::Client::Urql, [
        it_gets_the_state_then_changes_until_it_completes,
        a_completed_subscription_leaves_the_others_alone,
        its_variables_are_used,
        a_fragment_at_the_root_is_followed,
        queries_and_mutations_go_the_same_way,
        a_wrong_document_is_an_error_and_nothing_more,
        it_comes_back_after_a_restart,
    ];
    apollo => crate::clients::Client::Apollo, [
        it_gets_the_state_then_changes_until_it_completes,
        a_completed_subscription_leaves_the_others_alone,
        its_variables_are_used,
        a_fragment_at_the_root_is_followed,
        queries_and_mutations_go_the_same_way,
        a_wrong_document_is_an_error_and_nothing_more,
        it_comes_back_after_a_restart,
    ];
    relay => crate::clients::Client::Relay, [
        it_gets_the_state_then_changes_until_it_completes,
        a_completed_subscription_leaves_the_others_alone,
        its_variables_are_used,
        a_fragment_at_the_root_is_followed,
        queries_and_mutations_go_the_same_way,
        a_wrong_document_is_an_error_and_nothing_more,
        it_comes_back_after_a_restart,
    ];
    graphql_sse => crate::clients::Client::GraphqlSse, [
        it_gets_the_state_then_changes_until_it_completes,
        a_completed_subscription_leaves_the_others_alone,
        its_variables_are_used,
        a_fragment_at_the_root_is_followed,
        queries_and_mutations_go_the_same_way,
        a_wrong_document_is_an_error_and_nothing_more,
        it_comes_back_after_a_restart,
    ];
    // Served as the libraries have it: correct, and no more.
    subscriptions_transport_ws => crate::clients::Client::SubscriptionsTransportWs, [
        it_gets_the_state_then_changes_until_it_completes,
        a_completed_subscription_leaves_the_others_alone,
        its_variables_are_used,
        queries_and_mutations_go_the_same_way,
        a_wrong_document_is_an_error_and_nothing_more,
        it_comes_back_after_a_restart,
    ];
    apollo_multipart => crate::clients::Client::ApolloMultipart, [
        it_gets_the_state_then_changes_until_it_completes,
        a_completed_subscription_leaves_the_others_alone,
        its_variables_are_used,
        queries_and_mutations_go_the_same_way,
        a_wrong_document_is_an_error_and_nothing_more,
        it_comes_back_after_a_restart,
    ];
}
