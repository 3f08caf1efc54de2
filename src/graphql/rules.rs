//! Who may ask each field of the roots: declared in the schema, enforced from there.
//!
//! Owns the directive `@allowed`, its reading back, and what each rule asks of a caller. A resolver calls
//! [`super::access`], which looks the rule of its field up here: what the schema says is what is done. A field that
//! declares none is answered to nobody. Names of root fields are unique over the three roots, so that the name alone finds
//! the rule; a test keeps it so.

use std::collections::HashMap;
use std::sync::LazyLock;

use async_graphql::parser::types::{ConstDirective, TypeKind, TypeSystemDefinition};
use async_graphql::{Enum, Name, Positioned, Value};

use super::access::{Caller, Role};
use crate::error::Error;

pub use directive::allowed;

#[allow(missing_docs)] // what the macro makes of it has none
mod directive {
    use async_graphql::TypeDirective;

    use super::Askers;

    /// Who may ask this field. Others get FORBIDDEN, or UNAUTHENTICATED if nobody is signed in. Whoever may ask a field may
    /// have all that it answers.
    #[TypeDirective(location = "FieldDefinition", composable = "")]
    pub fn allowed(#[graphql(desc = "Whom it is for.")] to: Askers) {}
}

/// Whom a field is for. ADMIN may whatever SERVICE may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum Askers {
    /// For anybody.
    Anybody,
    /// For anybody, unless `auth.public_reads` is off.
    Readers,
    /// For signed-in callers.
    SignedIn,
    /// For the user, and for SERVICE.
    Owner,
    /// For SERVICE, and for users on boards that take their own scores.
    Scorers,
    /// For SERVICE, and for users themselves where `profile.user_writes` is on.
    ProfileWriters,
    /// For ANALYST and up.
    Analysts,
    /// For SERVICE.
    Backends,
    /// For ADMIN.
    Admins,
}

impl Askers {
    /// The rule that the field of that name declares.
    pub fn of(field: &str) -> Result<Askers, Error> {
        static RULES: LazyLock<HashMap<String, Askers>> = LazyLock::new(|| read(&super::sdl()));
        let declared = RULES.get(field).copied();
        declared.ok_or_else(|| Error::Internal(format!("the field {field} declares no rule")))
    }

    /// Whether `caller` may ask at all; about whom, and on which board, is another question.
    pub fn admit(self, caller: &Caller, public_reads: bool) -> Result<(), Error> {
        use Role::{Admin, Analyst, Service};
        let (enough, otherwise) = match self {
            Askers::Anybody => return Ok(()),
            Askers::Readers if public_reads => return Ok(()),
            Askers::Readers | Askers::SignedIn | Askers::Owner | Askers::Scorers | Askers::ProfileWriters => {
                (true, "")
            }
            Askers::Analysts => (
                matches!(caller.role, Analyst | Service | Admin),
                "figures need the role ANALYST or SERVICE",
            ),
            Askers::Backends => (
                matches!(caller.role, Service | Admin),
                "only a backend with the role SERVICE may do this",
            ),
            Askers::Admins => (caller.role == Admin, "only the role ADMIN may do this"),
        };
        match (caller.role, enough) {
            (Role::Anonymous, _) => Err(Error::Unauthenticated("sign in first".into())),
            (_, true) => Ok(()),
            (_, false) => Err(Error::Forbidden(otherwise)),
        }
    }
}

/// What the roots of a schema declare. A name that two of them have, or a rule that there is not, is left out.
fn read(sdl: &str) -> HashMap<String, Askers> {
    let document = match async_graphql::parser::parse_schema(sdl) {
        Ok(document) => document.definitions,
        Err(error) => {
            tracing::error!(%error, "the schema cannot be read back; nobody may ask anything");
            Vec::new()
        }
    };
    let roots = document.into_iter().filter_map(|definition| match definition {
        TypeSystemDefinition::Type(ty) => match (ty.node.name.node.as_str(), ty.node.kind) {
            ("Query" | "Mutation" | "Subscription", TypeKind::Object(root)) => Some(root.fields),
            _ => None,
        },
        _ => None,
    });
    let mut rules = HashMap::new();
    for field in roots.flatten() {
        let name = field.node.name.node.to_string();
        let rule = declared(&field.node.directives).filter(|_| !rules.contains_key(&name));
        rules.insert(name, rule);
    }
    rules
        .into_iter()
        .filter_map(|(name, rule)| Some((name, rule?)))
        .collect()
}

fn declared(directives: &[Positioned<ConstDirective>]) -> Option<Askers> {
    let mut directives = directives.iter();
    let rule = directives.find(|directive| directive.node.name.node == "allowed")?;
    match &rule.node.get_argument("to")?.node {
        Value::Enum(name) => named(name),
        _ => None,
    }
}

fn named(name: &Name) -> Option<Askers> {
    async_graphql::InputType::parse(Some(Value::Enum(name.clone()))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table test of `tests/it/access.rs` goes through the door; what no field declares yet is only tried here.
    #[test]
    fn only_admins_may_what_is_for_admins() {
        let code = |role| {
            let caller = Caller { user: None, role };
            Askers::Admins
                .admit(&caller, true)
                .map_err(|error| error.code().to_owned())
        };
        assert_eq!(code(Role::Anonymous), Err("UNAUTHENTICATED".into()));
        for role in [Role::User, Role::Analyst, Role::Service] {
            assert_eq!(code(role), Err("FORBIDDEN".into()), "{role:?}");
        }
        assert_eq!(code(Role::Admin), Ok(()));
    }

    #[test]
    fn a_field_without_a_rule_of_its_own_is_for_nobody() {
        let rules = read(
            "type Query { a: Int @allowed(to: ANYBODY) b: Int c: Int @allowed(to: NONE) d: Int @allowed(to: ANYBODY) }
             type Mutation { d: Int @allowed(to: BACKENDS) e: Int @allowed(to: BACKENDS) }
             type Other { f: Int @allowed(to: ANYBODY) }",
        );
        let mut names: Vec<_> = rules.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "e"]);
        assert_eq!(rules["e"], Askers::Backends);
        assert!(Askers::of("nothing").is_err());
    }
}
