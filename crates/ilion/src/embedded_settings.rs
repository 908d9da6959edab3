//! The settings of a database without a server.

use std::path::PathBuf;
use std::time::Duration;

use ilion_settings::{Loaded, Settings, is_of_server};

/// The settings of a program that embeds the database: SELECTs have no timeout.
pub(crate) fn embedded_settings(directory: PathBuf) -> Settings {
    Settings {
        directory,
        read_request_timeout: Duration::ZERO,
        range_request_timeout: Duration::ZERO,
        ..Settings::default()
    }
}

/// The settings of [`embedded_settings`], changed by name.
///
/// # Errors
/// A name is unknown, a value cannot be used, or the setting has no effect without a server.
pub(crate) fn named_settings<'a>(
    directory: PathBuf,
    named: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Settings, String> {
    let mut loaded = Loaded {
        settings: embedded_settings(directory.clone()),
        warnings: Vec::new(),
    };
    for (name, value) in named {
        if is_of_server(name) {
            return Err(format!(
                "setting {name}: it is for a server, and there is none in this process"
            ));
        }
        loaded
            .set(name, value, || format!("setting {name}"))
            .map_err(|error| error.to_string())?;
        if let Some(passed_over) = loaded.warnings.pop() {
            return Err(passed_over);
        }
    }
    if loaded.settings.directory != directory {
        return Err("setting directory: it is named already".to_owned());
    }
    Ok(loaded.settings)
}
