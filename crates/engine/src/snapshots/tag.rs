//! Which tags are accepted. Pure.

/// Maximum length of a tag, so that a hidden name (the tag with a dot and a suffix) is still a valid file name.
const TAG_BYTES_MAX: usize = 200;

/// Refuses a tag that cannot be the name of a directory. Compat: messages are Cassandra's where it has one; Cassandra accepts
/// more tags, but does not list snapshots whose tags have other characters than letters, digits, `_` and `-`.
pub(super) fn check(tag: &str) -> Result<(), String> {
    if tag.is_empty() {
        return Err("You must supply a snapshot name.".to_owned());
    }
    if tag.contains(['/', '\\']) {
        return Err("Snapshot name cannot contain /".to_owned());
    }
    if tag.starts_with('.') {
        return Err(format!("snapshot name {tag} starts with a dot"));
    }
    if tag.chars().any(char::is_control) {
        return Err(format!("snapshot name {tag:?} has a control character"));
    }
    if tag.len() > TAG_BYTES_MAX {
        return Err(format!(
            "a snapshot name has at most {TAG_BYTES_MAX} bytes, this one has {}",
            tag.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_names_of_directories() {
        for tag in ["1795475805252", "before-upgrade", "v1.2", "dropped-1-t", "Ä"] {
            assert_eq!(check(tag), Ok(()), "{tag}");
        }
        let long = "t".repeat(201);
        for tag in [
            "", ".", "..", ".hidden", "a/b", "/", "a\\b", "a\0b", "a\nb", &long,
        ] {
            assert!(check(tag).is_err(), "{tag:?}");
        }
        assert_eq!(check("x/y").unwrap_err(), "Snapshot name cannot contain /");
    }
}
