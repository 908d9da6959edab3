//! Names of CQL as names that Avro permits: letters of ASCII, digits and `_`, not a digit first.

use ilion_types::CqlType;

/// Field names for these CQL names, in the same order. Avro permits each; all are distinct, and none is among `taken`.
pub(super) fn field_names<'a>(names: impl Iterator<Item = &'a str>, taken: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let plain = permitted(name);
        let is_free = |name: &str| !taken.contains(&name) && found.iter().all(|other| other != name);
        let numbered = (2_u32..).map(|number| format!("{plain}_{number}"));
        let free = std::iter::once(plain.clone())
            .chain(numbered)
            .find(|name| is_free(name));
        found.push(free.unwrap_or(plain));
    }
    found
}

/// Names of the fields of a user type.
pub(super) fn udt_fields<'a>(fields: impl Iterator<Item = &'a (String, CqlType)>) -> Vec<String> {
    field_names(fields.map(|(name, _)| name.as_str()), &[])
}

/// The name with `_` for each character that Avro does not permit.
pub(super) fn permitted(name: &str) -> String {
    let is_permitted = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain: String = name
        .chars()
        .map(|c| if is_permitted(c) { c } else { '_' })
        .collect();
    match plain.starts_with(|c: char| !c.is_ascii_digit()) {
        true => plain,
        false => format!("_{plain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_permitted_and_differ() {
        let names = ["plain", "My col", "My-col", "2nd", "", "op", "My_col_2"];
        let fields = field_names(names.into_iter(), &["op"]);
        assert_eq!(
            fields,
            ["plain", "My_col", "My_col_2", "_2nd", "_", "op_2", "My_col_2_2"]
        );
    }
}
