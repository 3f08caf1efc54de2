//! The variables that a request leaves out.
//!
//! Owns that each has the default that its operation declares wherever it is asked for (async-graphql 7 looks up what
//! `@skip` and `@include` ask for among the variables that were sent), and that one which must be given is missed before
//! anything is executed (GraphQL specification, section 6.1.2; async-graphql 7 misses it field by field).

use async_graphql::{Request, ServerError, ServerResult, Value};

use super::document::chosen;

/// Adds the variables that were left out and have a default; an error if one is missing.
pub fn fill_in(request: &mut Request) -> ServerResult<()> {
    let name = request.operation_name.clone();
    let Ok(document) = request.parsed_query() else {
        return Ok(()); // the schema says best what is wrong
    };
    let Some(operation) = chosen(document, name.as_deref()) else {
        return Ok(());
    };
    let mut declared = Vec::with_capacity(operation.variable_definitions.len());
    for variable in &operation.variable_definitions {
        let variable = &variable.node;
        let default = variable
            .default_value
            .as_ref()
            .map(|default| default.node.clone());
        declared.push((
            variable.name.node.clone(),
            variable.var_type.node.clone(),
            default,
        ));
    }
    for (name, kind, default) in declared {
        let given = request.variables.get(&name);
        if let (None, Some(default)) = (given, &default) {
            request.variables.insert(name, default.clone());
        } else if !kind.nullable && given.is_none_or(|given| *given == Value::Null) {
            let reason = format!("the variable ${name} of the type {kind} is missing");
            return Err(ServerError::new(reason, None));
        }
    }
    Ok(())
}
