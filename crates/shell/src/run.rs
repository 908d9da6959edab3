//! [`run`]: the shell as a program.

use std::io::{self, BufWriter, IsTerminal as _, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ilion_env::Env;
use ilion_settings::{Loaded, Settings};

use crate::args::ShellArgs;
use crate::editor::edit;
use crate::embedded::Embedded;
use crate::format::Format;
use crate::output::Output;
use crate::paths::FileReader;
use crate::remote::Remote;
use crate::session::{How, Session};
use crate::shell::{PAGE_ROWS, Shell, ShellSettings};
use crate::sstables::open_sstables;

/// Rows in a page for output to programs, which is the same for any size.
const LARGE_PAGE_ROWS: u32 = 5000;

/// How the shell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All statements were executed.
    Well,
    /// A statement failed.
    WithFailures,
}

/// Runs the shell until its input ends.
///
/// # Errors
/// There is no connection, the directory cannot be opened, or the input cannot be read.
pub fn run(args: &ShellArgs, env: &Arc<dyn Env>) -> anyhow::Result<Ended> {
    if args.format.columnar().is_some() {
        crate::columnar::check().map_err(anyhow::Error::msg)?;
    }
    let session = open(args, env)?;
    let is_terminal = io::stdin().is_terminal() && args.execute.is_none() && args.file.is_none();
    let stdout = io::stdout();
    let is_shown = stdout.is_terminal();
    let has_colors = is_shown && !args.no_color && std::env::var_os("NO_COLOR").is_none();
    let (mut out, mut errors) = (BufWriter::new(stdout.lock()), io::stderr());
    let mut output = Output::new(&mut out, &mut errors).on_terminal(is_shown);
    if has_colors {
        output = output.with_colors();
    }
    if let Some(path) = &args.output {
        output.divert(&**env, path)?;
    }
    let mut shell = Shell::new(session, env.clone(), output, settings(args, is_terminal));
    let done = begin(&mut shell, args).and_then(|()| match is_terminal {
        true => converse(&mut shell, env, has_colors),
        false => feed(&mut shell, args, env),
    });
    match done {
        Ok(()) if shell.has_failed() && !is_terminal => Ok(Ended::WithFailures),
        Ok(()) => Ok(Ended::Well),
        // The program that reads the output has stopped reading.
        Err(error) if is_broken_pipe(&error) => Ok(Ended::Well),
        Err(error) => Err(error),
    }
}

fn settings(args: &ShellArgs, is_interactive: bool) -> ShellSettings {
    let page_rows = match args.format {
        Format::Table | Format::Vertical => PAGE_ROWS,
        Format::Json | Format::Csv | Format::Parquet | Format::Arrow => LARGE_PAGE_ROWS,
    };
    ShellSettings {
        how: How {
            page_size: Some(page_rows),
            ..How::default()
        },
        format: args.format,
        is_interactive,
    }
}

fn open(args: &ShellArgs, env: &Arc<dyn Env>) -> anyhow::Result<Box<dyn Session>> {
    if let Some(directory) = &args.data {
        return open_directory(directory, &args.set, env);
    }
    if let Some(folder) = &args.sstables {
        return open_folder(folder, args, env);
    }
    let password = match (&args.username, &args.password) {
        (Some(_), None) => Some(password()?),
        (_, password) => password.clone(),
    };
    let target = args.target(password).map_err(anyhow::Error::msg)?;
    Ok(Box::new(Remote::open(target)?))
}

/// The password of the environment, or the one that the user types.
fn password() -> anyhow::Result<String> {
    match std::env::var("ILION_PASSWORD") {
        Ok(password) => Ok(password),
        Err(_) => rpassword::prompt_password("Password: ").context("asking for the password"),
    }
}

/// The settings of a session in this process.
fn embedded_settings(assignments: &[String]) -> anyhow::Result<Settings> {
    let mut loaded = Loaded::default();
    for assignment in assignments {
        loaded.set_assignment(assignment)?;
    }
    // A long read delays no other client.
    Ok(Settings {
        read_request_timeout: Duration::ZERO,
        range_request_timeout: Duration::ZERO,
        ..loaded.settings
    })
}

fn open_directory(
    directory: &Path,
    assignments: &[String],
    env: &Arc<dyn Env>,
) -> anyhow::Result<Box<dyn Session>> {
    let settings = Settings {
        directory: directory.to_path_buf(),
        ..embedded_settings(assignments)?
    };
    let session = Embedded::open(env.clone(), &settings);
    Ok(Box::new(
        session.with_context(|| format!("opening {}", directory.display()))?,
    ))
}

fn open_folder(folder: &Path, args: &ShellArgs, env: &Arc<dyn Env>) -> anyhow::Result<Box<dyn Session>> {
    let default = folder.join("schema.cql");
    let schema = args.schema.as_ref().unwrap_or(&default);
    if args.schema.is_none() && !env.exists(schema) {
        anyhow::bail!(
            "there is no {}: give the statements that create the tables by --schema FILE",
            schema.display()
        );
    }
    let opened = open_sstables(env, folder, schema, &embedded_settings(&args.set)?)?;
    for note in &opened.notes {
        eprintln!("note: {note}");
    }
    Ok(Box::new(opened.session))
}

/// Enters the keyspace of the arguments.
fn begin(shell: &mut Shell<'_>, args: &ShellArgs) -> anyhow::Result<()> {
    if let Some(keyspace) = &args.keyspace {
        shell.enter(keyspace)?;
    }
    Ok(())
}

/// Greets the user, and executes what the user types.
fn converse(shell: &mut Shell<'_>, env: &Arc<dyn Env>, has_colors: bool) -> anyhow::Result<()> {
    for line in [shell.host_line()?, shell.version_line()?] {
        shell.output.say(&line)?;
    }
    shell.output.say("Use HELP for help.")?;
    shell.output.flush()?;
    Ok(edit(shell, &**env, has_colors)?)
}

fn feed(shell: &mut Shell<'_>, args: &ShellArgs, env: &Arc<dyn Env>) -> anyhow::Result<()> {
    if let Some(statements) = &args.execute {
        // A last statement needs no semicolon.
        let mut script = statements.as_bytes().chain(&b"\n;"[..]);
        shell.run_script("<stdin>", &mut script)?;
    } else if let Some(path) = &args.file {
        let file = env.open_read(path)?;
        let name = path.display().to_string();
        shell
            .run_script(&name, &mut FileReader::new(file, 0))
            .with_context(|| name.clone())?;
    } else {
        shell.run_script("<stdin>", &mut io::stdin().lock())?;
    }
    Ok(())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
