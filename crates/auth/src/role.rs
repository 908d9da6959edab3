//! Roles, and the roles that are granted to them directly or through others.

use std::collections::BTreeMap;

/// A role, as `system_auth.roles` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// True if the role may do everything.
    pub is_superuser: bool,
    /// True if the role may log in.
    pub can_login: bool,
    /// The roles that were granted to it.
    pub member_of: Vec<String>,
}

/// The role and all roles that are granted to it, directly or through others, by name. A role that `load` does not find was dropped and
/// is left out. Cycles are harmless; statements refuse them.
///
/// # Errors
/// Fails if `load` fails.
pub fn closure<E>(
    name: &str,
    mut load: impl FnMut(&str) -> Result<Option<Role>, E>,
) -> Result<BTreeMap<String, Role>, E> {
    let mut found = BTreeMap::new();
    let mut next = vec![name.to_owned()];
    while let Some(name) = next.pop() {
        if found.contains_key(&name) {
            continue;
        }
        if let Some(role) = load(&name)? {
            next.extend(role.member_of.iter().cloned());
            found.insert(name, role);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_followed_through_others_even_in_circles() {
        let load = |name: &str| {
            let member_of: &[&str] = match name {
                "a" => &["b", "gone"],
                "b" => &["c"],
                "c" => &["a"],
                _ => return Ok::<_, ()>(None),
            };
            Ok(Some(Role {
                member_of: member_of.iter().map(|role| (*role).to_owned()).collect(),
                ..Role::default()
            }))
        };
        let names = |of| closure(of, load).unwrap().into_keys().collect::<Vec<_>>();
        assert_eq!(names("a"), ["a", "b", "c"]);
        assert!(names("gone").is_empty());
    }
}
