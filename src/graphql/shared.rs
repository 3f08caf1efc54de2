//! Which fields answer everybody alike.
//!
//! Owns the directive `@shared` and its reading back from the schema: a live operation that selects shared fields only is
//! executed once for all its subscribers, any other once for each user. A mark on an object is one on each of its fields, also on
//! those that are added later: whoever adds a private one gives it to another object. A test keeps the list of what is shared.

use std::collections::{BTreeMap, HashMap};

use async_graphql::parser::types::{
    BaseType, ConstDirective, FieldDefinition, ObjectType, Type, TypeKind, TypeSystemDefinition,
};
use async_graphql::{Positioned, Value};

pub use directive::shared;

#[allow(missing_docs)] // what the macro makes of it has none
mod directive {
    use async_graphql::TypeDirective;

    /// The answer is the same for everybody who may ask. On an object: all its fields, unless they are marked themselves.
    #[TypeDirective(location = "FieldDefinition", location = "Object", composable = "")]
    pub fn shared(
        #[graphql(desc = "Only if this argument is given; left out, the field is about the viewer.")]
        given: Option<String>,
    ) {
    }
}

/// What the schema says of its fields.
pub struct Marks {
    types: HashMap<String, BTreeMap<String, Field>>,
}

/// One field, as far as sharing goes.
#[derive(Debug, Clone)]
pub struct Field {
    /// The named type of its answer.
    pub answers: String,
    /// The arguments' defaults.
    pub defaults: BTreeMap<String, Value>,
    shared: Shared,
}

#[derive(Debug, Clone, PartialEq)]
enum Shared {
    No,
    Yes,
    Given(String),
}

impl Marks {
    /// Reads the marks of a schema, given in the schema definition language. What cannot be read is not shared.
    pub fn read(sdl: &str) -> Marks {
        let document = match async_graphql::parser::parse_schema(sdl) {
            Ok(document) => document.definitions,
            Err(error) => {
                tracing::error!(%error, "the schema cannot be read back; nothing is shared");
                Vec::new()
            }
        };
        let types = document.into_iter().filter_map(|definition| match definition {
            TypeSystemDefinition::Type(ty) => match ty.node.kind {
                TypeKind::Object(object) => {
                    let all = mark(&ty.node.directives);
                    Some((ty.node.name.node.to_string(), fields(object, &all)))
                }
                _ => None,
            },
            _ => None,
        });
        Marks {
            types: types.collect(),
        }
    }

    /// What is known of a field; `None` where the schema has no such field (`__typename` is answered by itself).
    pub fn field(&self, ty: &str, field: &str) -> Option<&Field> {
        self.types.get(ty)?.get(field)
    }
}

impl Field {
    /// Whether its answer is the same for everybody; `given` tells which arguments the caller has given.
    pub fn is_shared(&self, given: impl Fn(&str) -> bool) -> bool {
        match &self.shared {
            Shared::No => false,
            Shared::Yes => true,
            Shared::Given(argument) => given(argument),
        }
    }
}

fn fields(object: ObjectType, all: &Shared) -> BTreeMap<String, Field> {
    let field = |field: Positioned<FieldDefinition>| {
        let field = field.node;
        let own = mark(&field.directives);
        let defaults = field.arguments.iter().filter_map(|argument| {
            let default = argument.node.default_value.as_ref()?;
            Some((argument.node.name.node.to_string(), default.node.clone()))
        });
        let described = Field {
            answers: named(&field.ty.node),
            defaults: defaults.collect(),
            shared: if own == Shared::No { all.clone() } else { own },
        };
        (field.name.node.to_string(), described)
    };
    object.fields.into_iter().map(field).collect()
}

fn mark(directives: &[Positioned<ConstDirective>]) -> Shared {
    let Some(mark) = directives
        .iter()
        .find(|directive| directive.node.name.node == "shared")
    else {
        return Shared::No;
    };
    match mark.node.get_argument("given").map(|argument| &argument.node) {
        Some(Value::String(argument)) => Shared::Given(argument.clone()),
        Some(_) | None => Shared::Yes,
    }
}

fn named(ty: &Type) -> String {
    match &ty.base {
        BaseType::Named(name) => name.to_string(),
        BaseType::List(inner) => named(inner),
    }
}
