//! Roles, users and identities.

use super::{Parser, Result};
use crate::ast::{
    Access, AddIdentity, AlterRole, CreateRole, DropIdentity, DropRole, Identifier, Password, RoleOptions,
    Statement,
};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::lexer::unquoted;
use crate::token::Kind;

const QUOTED_USER: &str =
    "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE";
const QUOTED_IDENTITY: &str = "Quoted strings are are not supported for identity";

impl Parser<'_> {
    /// A role: a name, or a string without case folding.
    pub(super) fn role(&mut self) -> Result<Identifier> {
        if self.at_string() {
            return self.string();
        }
        self.name_of("role")
    }

    /// A user or identity, without case folding.
    fn bare_word_or_string(&mut self, refuse_quoted: &str) -> Result<String> {
        match self.kind() {
            Kind::Identifier | Kind::String | Kind::DollarString => {
                let token = self.advance();
                Ok(unquoted(self.text, token))
            }
            Kind::QuotedName => Err(Fault::Rule(refuse_quoted.into())),
            _ => self.unexpected(),
        }
    }

    pub(super) fn create_role(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let role = self.role()?;
        let options = self.role_options()?;
        Ok(Statement::CreateRole(Box::new(CreateRole {
            if_not_exists,
            role,
            options,
        })))
    }

    pub(super) fn alter_role(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let role = self.role()?;
        let options = self.role_options()?;
        Ok(Statement::AlterRole(Box::new(AlterRole {
            if_exists,
            role,
            options,
        })))
    }

    pub(super) fn drop_role(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        Ok(Statement::DropRole(DropRole {
            if_exists,
            role: self.role()?,
        }))
    }

    pub(super) fn create_user(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let role = self.bare_word_or_string(QUOTED_USER)?;
        let mut options = self.user_options()?;
        options.login = Some(true);
        options.superuser.get_or_insert(false);
        Ok(Statement::CreateRole(Box::new(CreateRole {
            if_not_exists,
            role,
            options,
        })))
    }

    pub(super) fn alter_user(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let role = self.bare_word_or_string(QUOTED_USER)?;
        let options = self.user_options()?;
        Ok(Statement::AlterRole(Box::new(AlterRole {
            if_exists,
            role,
            options,
        })))
    }

    pub(super) fn drop_user(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let role = self.bare_word_or_string(QUOTED_USER)?;
        Ok(Statement::DropRole(DropRole { if_exists, role }))
    }

    fn user_options(&mut self) -> Result<RoleOptions> {
        let mut options = RoleOptions::default();
        if self.eat_word(Keyword::With) {
            let is_hashed = self.eat_word(Keyword::Hashed);
            if !is_hashed && !self.at_word(Keyword::Password) {
                return self.unexpected();
            }
            self.expect_word(Keyword::Password)?;
            options.password = Some(password(is_hashed, self.string()?));
        }
        if self.eat_word(Keyword::Superuser) {
            options.superuser = Some(true);
        } else if self.eat_word(Keyword::Nosuperuser) {
            options.superuser = Some(false);
        }
        Ok(options)
    }

    fn role_options(&mut self) -> Result<RoleOptions> {
        let mut options = RoleOptions::default();
        if self.eat_word(Keyword::With) {
            self.joined_by_and(|parser| parser.role_option(&mut options))?;
        }
        Ok(options)
    }

    fn role_option(&mut self, options: &mut RoleOptions) -> Result<()> {
        let Kind::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            Keyword::Password | Keyword::Hashed => self.password_option(word, options),
            Keyword::Options => {
                self.advance();
                self.expect(Kind::Equal)?;
                let custom = self.property_map()?;
                set_once(&mut options.custom, custom, "OPTIONS")
            }
            Keyword::Superuser => {
                let value = self.boolean_option()?;
                set_once(&mut options.superuser, value, "SUPERUSER")
            }
            Keyword::Login => {
                let value = self.boolean_option()?;
                set_once(&mut options.login, value, "LOGIN")
            }
            Keyword::Access => self.access_option(options),
            _ => self.unexpected(),
        }
    }

    fn password_option(&mut self, word: Keyword, options: &mut RoleOptions) -> Result<()> {
        self.advance();
        let is_hashed = word == Keyword::Hashed;
        if is_hashed {
            self.expect_word(Keyword::Password)?;
        }
        self.expect(Kind::Equal)?;
        let value = password(is_hashed, self.string()?);
        match (&options.password, &value) {
            (Some(Password::Plain(_)), Password::Hashed(_))
            | (Some(Password::Hashed(_)), Password::Plain(_)) => Err(Fault::Rule(
                "Options 'password' and 'hashed password' are mutually exclusive".into(),
            )),
            _ => {
                let name = if is_hashed { "HASHED_PASSWORD" } else { "PASSWORD" };
                set_once(&mut options.password, value, name)
            }
        }
    }

    /// `= true` or `= false`, after the current word.
    fn boolean_option(&mut self) -> Result<bool> {
        self.advance();
        self.expect(Kind::Equal)?;
        let is_true = self.eat_word(Keyword::True);
        if !is_true {
            self.expect_word(Keyword::False)?;
        }
        Ok(is_true)
    }

    /// `ACCESS TO [ALL] DATACENTERS ..` or `ACCESS FROM [ALL] CIDRS ..`; several are combined.
    fn access_option(&mut self, options: &mut RoleOptions) -> Result<()> {
        self.advance();
        let (slot, what) = match self.kind() {
            Kind::Keyword(Keyword::To) => (&mut options.datacenters, Keyword::Datacenters),
            Kind::Keyword(Keyword::From) => (&mut options.cidr_groups, Keyword::Cidrs),
            _ => return self.unexpected(),
        };
        self.advance();
        if self.eat_word(Keyword::All) {
            self.expect_word(what)?;
            *slot = Some(Access::All);
            return Ok(());
        }
        self.expect_word(what)?;
        self.expect(Kind::OpenBrace)?;
        let names = self.list(Self::string)?;
        self.expect(Kind::CloseBrace)?;
        match slot {
            Some(Access::All) => {}
            Some(Access::Only(all)) => all.extend(names),
            None => *slot = Some(Access::Only(names)),
        }
        Ok(())
    }

    pub(super) fn add_identity(&mut self) -> Result<Statement> {
        self.advance();
        self.expect_word(Keyword::Identity)?;
        let if_not_exists = self.if_not_exists()?;
        let identity = self.bare_word_or_string(QUOTED_IDENTITY)?;
        self.expect_word(Keyword::To)?;
        self.expect_word(Keyword::Role)?;
        let role = self.bare_word_or_string(QUOTED_IDENTITY)?;
        Ok(Statement::AddIdentity(AddIdentity {
            if_not_exists,
            identity,
            role,
        }))
    }

    pub(super) fn drop_identity(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let identity = self.bare_word_or_string(QUOTED_IDENTITY)?;
        Ok(Statement::DropIdentity(DropIdentity { if_exists, identity }))
    }
}

fn password(is_hashed: bool, text: String) -> Password {
    if is_hashed {
        Password::Hashed(text)
    } else {
        Password::Plain(text)
    }
}

fn set_once<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<()> {
    if slot.is_some() {
        return Err(Fault::Rule(format!("Multiple definition for property '{name}'")));
    }
    *slot = Some(value);
    Ok(())
}
