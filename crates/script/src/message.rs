//! The message for the client when a script fails.

/// Longest message in bytes; longer ones are cut.
const MESSAGE_BYTES_MAX: usize = 1000;

/// The cause of an error, without the interpreter's stack and without lines of Ilion's own library.
pub(crate) fn reason(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => reason(cause),
        mlua::Error::MemoryError(_) => "it took more memory than it may".to_owned(),
        mlua::Error::RuntimeError(message) | mlua::Error::SyntaxError { message, .. } => {
            let message = message.split("\nstack traceback:").next().unwrap_or_default();
            cut(without_library_line(message))
        }
        other => cut(&other.to_string()),
    }
}

fn without_library_line(message: &str) -> &str {
    let Some(after) = message.strip_prefix("library:") else {
        return message;
    };
    match after.split_once(": ") {
        Some((line, rest)) if line.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => message,
    }
}

fn cut(message: &str) -> String {
    if message.len() <= MESSAGE_BYTES_MAX {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    format!("{}...", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::{cut, without_library_line};

    #[test]
    fn lines_of_the_library_are_taken_out() {
        assert_eq!(without_library_line("library:12: no"), "no");
        assert_eq!(without_library_line("function:12: no"), "function:12: no");
        assert_eq!(without_library_line("library: no"), "library: no");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = "\u{e4}".repeat(10_000);
        assert!(cut(&long).len() < 1100);
    }
}
