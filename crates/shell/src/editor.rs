//! The editor: lines from a terminal, with colours, completion, and a history. The editor itself is reedline.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ilion_cql::{Class, hide_secrets, outline};
use ilion_env::Env;
use nu_ansi_term::{Color, Style};
use parking_lot::Mutex;
use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, Highlighter, KeyCode,
    KeyModifiers, MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent,
    ReedlineMenu, Signal, Span, StyledText, Suggestion, ValidationResult, Validator,
    default_emacs_keybindings,
};

use crate::catalog::Catalog;
use crate::complete::complete;
use crate::script::{Next, is_line_command, next_statement};
use crate::shell::{Flow, Shell};

const MENU: &str = "completion";
/// Maximum number of statements in the history.
const HISTORY_MAX: usize = 5000;

/// Executes what a user types, until the user leaves.
///
/// # Errors
/// The terminal cannot be used.
pub fn edit(shell: &mut Shell<'_>, env: &dyn Env, has_colors: bool) -> io::Result<()> {
    let catalog = Arc::new(Mutex::new(shell.read_catalog()));
    let mut editor = editor(&catalog, env, has_colors);
    loop {
        if shell.take_schema_change() {
            *catalog.lock() = shell.read_catalog();
        }
        catalog.lock().current = shell.keyspace.clone();
        let prompt = KeyspacePrompt(shell.keyspace.clone());
        let flow = match editor.read_line(&prompt)? {
            Signal::Success(text) => shell.run_typed(&text)?,
            Signal::CtrlD => Flow::Exit,
            // The user has given up the line.
            _ => Flow::Continue,
        };
        if flow == Flow::Exit {
            return editor.sync_history();
        }
    }
}

fn editor(catalog: &Arc<Mutex<Catalog>>, env: &dyn Env, has_colors: bool) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let complete = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, new_line);
    let editor = Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_completer(Box::new(Names(catalog.clone())))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(
            ColumnarMenu::default().with_name(MENU),
        )))
        .with_validator(Box::new(WholeStatements))
        .with_highlighter(Box::new(Colours))
        .with_history_exclusion_prefix(Some(" ".to_owned()))
        .with_ansi_colors(has_colors)
        .use_bracketed_paste(true);
    match history(env) {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// The history of earlier shells; `None` if there is no place for it.
fn history(env: &dyn Env) -> Option<secretless::Secretless> {
    let path = history_path()?;
    env.create_dir_all(path.parent()?).ok()?;
    // The file must be for its owner only; the editor keeps the mode of a file that exists.
    drop(env.open_append_private(&path).ok()?);
    Some(secretless::Secretless(
        FileBackedHistory::with_file(HISTORY_MAX, path).ok()?,
    ))
}

/// The path of the history, as the XDG base directory specification says.
fn history_path() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("ilion/cql_history"))
}

/// A history that keeps no passwords.
mod secretless {
    use reedline::{
        FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
    };

    /// A history in a file.
    pub struct Secretless(pub FileBackedHistory);

    impl History for Secretless {
        fn save(&mut self, mut item: HistoryItem) -> Result<HistoryItem> {
            item.command_line = super::without_secrets(&item.command_line);
            self.0.save(item)
        }

        fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
            self.0.load(id)
        }

        fn count(&self, query: SearchQuery) -> Result<i64> {
            self.0.count(query)
        }

        fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
            self.0.search(query)
        }

        fn update(&mut self, id: HistoryItemId, updater: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
            self.0.update(id, updater)
        }

        fn clear(&mut self) -> Result<()> {
            self.0.clear()
        }

        fn delete(&mut self, id: HistoryItemId) -> Result<()> {
            self.0.delete(id)
        }

        fn sync(&mut self) -> std::io::Result<()> {
            self.0.sync()
        }

        fn session(&self) -> Option<HistorySessionId> {
            self.0.session()
        }
    }
}

/// The text as the history keeps it.
fn without_secrets(text: &str) -> String {
    let mut words = text.split_whitespace();
    let is_login = words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("login"));
    match (is_login, words.next()) {
        (true, Some(role)) => format!("LOGIN {}", role.trim_end_matches(';')),
        _ => hide_secrets(text).into_owned(),
    }
}

/// `cql> `, or `cql:KEYSPACE> `.
struct KeyspacePrompt(Option<String>);

impl Prompt for KeyspacePrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        match &self.0 {
            None => Cow::Borrowed("cql"),
            Some(keyspace) => Cow::Owned(format!("cql:{keyspace}")),
        }
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(" ... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }
}

/// Enter executes whole statements, and begins a new line in others.
struct WholeStatements;

impl Validator for WholeStatements {
    fn validate(&self, text: &str) -> ValidationResult {
        let mut rest = text;
        loop {
            match next_statement(rest) {
                Next::Statement { end, .. } => rest = &rest[end..],
                Next::Incomplete { start } if !is_line_command(&rest[start..]) => {
                    return ValidationResult::Incomplete;
                }
                Next::Incomplete { .. } | Next::Nothing => return ValidationResult::Complete,
            }
        }
    }
}

/// Completes names and keywords.
struct Names(Arc<Mutex<Catalog>>);

impl Completer for Names {
    fn complete(&mut self, line: &str, cursor: usize) -> CompletionResult {
        let found = complete(line, cursor, &self.0.lock());
        let span = Span::new(found.start, cursor);
        let suggestion = |word: String| Suggestion {
            append_whitespace: !word.ends_with(['.', '(']),
            value: word,
            span,
            ..Suggestion::default()
        };
        CompletionResult::fresh(found.words.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

/// Colours by the classes of tokens.
struct Colours;

impl Highlighter for Colours {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut text = StyledText::new();
        for piece in outline(line) {
            let content = line.get(piece.range).unwrap_or_default().to_owned();
            text.push((style(piece.class), content));
        }
        text
    }
}

fn style(class: Class) -> Style {
    match class {
        Class::Keyword => Style::new().fg(Color::LightBlue).bold(),
        Class::String => Style::new().fg(Color::Yellow),
        Class::Constant => Style::new().fg(Color::Green),
        Class::QuotedName => Style::new().fg(Color::Cyan),
        Class::Comment => Style::new().fg(Color::DarkGray),
        Class::Invalid | Class::Unfinished => Style::new().fg(Color::LightRed),
        Class::Space | Class::Name | Class::Semicolon | Class::Symbol => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_executes_whole_statements_only() {
        let is_whole = |text| matches!(WholeStatements.validate(text), ValidationResult::Complete);
        for text in [
            "",
            "SELECT 1;",
            "USE a; -- x",
            "\\d t",
            "consistency one",
            "SELECT 1; exit",
        ] {
            assert!(is_whole(text), "{text}");
        }
        for text in ["SELECT 1", "SELECT 'a;", "BEGIN BATCH INSERT 1;"] {
            assert!(!is_whole(text), "{text}");
        }
    }

    #[test]
    fn passwords_are_not_kept() {
        assert_eq!(without_secrets("LOGIN anna 'secret';"), "LOGIN anna");
        let kept = without_secrets("CREATE ROLE anna WITH PASSWORD = 'secret' AND LOGIN = true;");
        assert!(
            !kept.contains("secret") && kept.starts_with("CREATE ROLE anna"),
            "{kept}"
        );
        assert_eq!(without_secrets("SELECT 'secret';"), "SELECT 'secret';");
    }
}
