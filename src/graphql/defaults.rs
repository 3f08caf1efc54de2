//! The variables that a request leaves out.
//!
//! Owns that each has the default that its operation declares wherever it is asked for: async-graphql 7 looks up what
//! `@skip` and `@include` ask for among the variables that were sent.

use async_graphql::Request;

use super::document::chosen;

/// Adds the variables that were left out and have a default.
pub fn fill_in(request: &mut Request) {
    let name = request.operation_name.clone();
    let Ok(document) = request.parsed_query() else {
        return; // the schema says best what is wrong
    };
    let Some(operation) = chosen(document, name.as_deref()) else {
        return;
    };
    let variables = operation.variable_definitions.iter();
    let defaults: Vec<_> = variables
        .filter_map(|variable| {
            let default = variable.node.default_value.as_ref()?;
            Some((variable.node.name.node.clone(), default.node.clone()))
        })
        .collect();
    for (name, default) in defaults {
        request.variables.entry(name).or_insert(default);
    }
}
