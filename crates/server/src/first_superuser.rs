//! Creates the first superuser of a node whose clients must log in.

use std::path::{Path, PathBuf};

use ilion_query::FirstSuperuser;

use crate::ServerNode;
use crate::superuser::{SuperuserChoice, SuperuserError, random_password};

/// Compat: the name of Cassandra's first superuser.
const ROLE_DEFAULT: &str = "cassandra";
/// Name of the file with a random password, in the node's directory.
const FILE_NAME: &str = "superuser-password";

/// A superuser that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSuperuser {
    /// Its name.
    pub role: String,
    /// The file with its random password; `None` if the operator has set the password.
    pub password_file: Option<PathBuf>,
}

impl ServerNode {
    /// Creates the first superuser, if clients must log in and there is no role yet. If nodes of a cluster start at the same time, one of
    /// them does. A random password is written to a file in
    /// `directory` first, so that no crash leaves a role whose password nobody knows.
    ///
    /// # Errors
    /// See [`SuperuserError`].
    pub fn ensure_superuser(
        &self,
        choice: &SuperuserChoice,
        directory: &Path,
    ) -> Result<Option<NewSuperuser>, SuperuserError> {
        let access = self.processor().access();
        if !access.needs_superuser()? {
            return Ok(None);
        }
        let env = self.engine().env();
        let role = choice.role.clone().unwrap_or_else(|| ROLE_DEFAULT.to_owned());
        let (password, password_file) = match &choice.password {
            Some(given) => (given.clone(), None),
            None => {
                let password = random_password(&**env);
                let path = directory.join(FILE_NAME);
                env.create_dir_all(directory)?;
                env.write_private(&path, format!("{password}\n").as_bytes())?;
                (password, Some(path))
            }
        };
        let first = FirstSuperuser {
            role: role.clone(),
            password,
        };
        let Some(created) = access.create_superuser(&first)? else {
            if let Some(path) = &password_file {
                env.remove_file(path)?;
            }
            return Ok(None);
        };
        self.wait_durable(&created)
            .map_err(|error| SuperuserError::Log(error.to_string()))?;
        Ok(Some(NewSuperuser { role, password_file }))
    }
}
