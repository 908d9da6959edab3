//! From selectors to expressions: names and functions are resolved, and types found.
//!
//! Each expression has a type and the text that names its column unless it has an alias. Compat: `Selectable` and the
//! selector factories of Cassandra 5.0.

use std::sync::Arc;

use ilion_cql::ast::{self, Selector};
use ilion_schema::TableSchema;
use ilion_types::CqlType;

use super::aggregate::AggregatePlan;
use super::cell_facts::Fact;
use super::expression::Expr;
use super::selector_term::as_term;
use crate::aggregate::AggregateKind;
use crate::context::PlanContext;
use crate::masking::Masks;
use crate::restrictions::relation::existing;
use crate::term::functions::{self, Argument, ScalarFunction};
use crate::term::{Assignment, Term, print_name, test_type_assignment};
use crate::type_name::resolve_type;
use crate::{ColumnSpec, Error};

/// An expression, its type, and its name in the result.
#[derive(Debug)]
pub(super) struct Compiled {
    pub expr: Expr,
    pub ty: CqlType,
    pub text: String,
    /// True if it contains an aggregate.
    pub is_aggregate: bool,
    /// True if it contains a column outside of aggregates.
    pub has_column: bool,
}

/// An argument while its function is resolved.
pub(super) enum Operand {
    Term(ast::Term),
    Compiled(Compiled),
}

impl Operand {
    pub(super) fn argument(&self) -> Argument<'_> {
        match self {
            Self::Term(term) => Argument::Term(term),
            Self::Compiled(compiled) => Argument::Typed(&compiled.ty, &compiled.text),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Term(term) => term_text(term),
            Self::Compiled(compiled) => compiled.text.clone(),
        }
    }
}

/// Compiles the selectors of one statement.
pub(super) struct Compiler<'a> {
    pub table: &'a TableSchema,
    pub context: &'a PlanContext<'a>,
    /// The aggregates found so far.
    pub aggregates: Vec<AggregatePlan>,
    /// The masks to put around columns.
    masks: Option<&'a Masks>,
}

impl<'a> Compiler<'a> {
    pub fn new(table: &'a TableSchema, context: &'a PlanContext<'a>) -> Self {
        Self {
            table,
            context,
            aggregates: Vec::new(),
            masks: None,
        }
    }

    /// A compiler that puts these masks around columns.
    pub fn masking(masks: Option<&'a Masks>, table: &'a TableSchema, context: &'a PlanContext<'a>) -> Self {
        Self {
            masks,
            ..Self::new(table, context)
        }
    }
}

impl Compiler<'_> {
    /// Compiles a selector. `expected` is the type that the context requires, if any.
    pub fn compile(&mut self, selector: &Selector, expected: Option<&CqlType>) -> Result<Compiled, Error> {
        if let Some(term) = as_term(selector) {
            return self.constant(&term, expected);
        }
        match selector {
            Selector::Column(name) => self.column(name),
            Selector::CountRows => {
                Ok(self.aggregate(AggregateKind::Count, None, CqlType::BigInt, "count".into()))
            }
            Selector::Function { name, arguments } => self.function(name, arguments, expected),
            Selector::Writetime(of) => self.fact(Fact::Writetime, of),
            Selector::MaxWritetime(of) => self.fact(Fact::MaxWritetime, of),
            Selector::Ttl(of) => self.fact(Fact::Ttl, of),
            Selector::Cast {
                selector,
                native_type,
            } => self.cast(selector, *native_type),
            Selector::TypeHint { type_name, selector } => self.hint(type_name, selector),
            Selector::Element { of, key } => self.element(of, key),
            Selector::Slice { of, from, to } => self.slice(of, from.as_ref(), to.as_ref()),
            Selector::Field { of, field } => self.field(of, field),
            Selector::Arithmetic {
                operator,
                left,
                right,
            } => self.arithmetic(*operator, left, right, expected),
            Selector::Negate(of) => self.negation(of, expected),
            Selector::List(_) | Selector::Set(_) | Selector::Tuple(_) | Selector::MapOrUserType(_) => {
                self.compound(selector, expected)
            }
            Selector::Literal(_) | Selector::Bind(_) => Err(cannot_infer(&selector.to_string())),
        }
    }

    /// The spec of a term in this selection.
    pub fn spec(&self, name: &str, ty: CqlType) -> ColumnSpec {
        ColumnSpec::of(self.table, name, ty)
    }

    fn constant(&mut self, term: &ast::Term, expected: Option<&CqlType>) -> Result<Compiled, Error> {
        let ty = match self.exact_type(term)? {
            Some(ty) => ty,
            None => match expected {
                Some(expected) => expected.clone(),
                None => return Err(self.untyped(term)),
            },
        };
        let spec = self.spec("[selection]", ty.clone());
        if let ast::Term::TypeHint { term: hinted, .. } = term
            && Argument::Term(hinted).test(&spec, self.context) == Assignment::No
        {
            let text = term_text(term);
            return Err(Error::invalid(format!(
                "Cannot assign value {text} to {text} of type {ty}"
            )));
        }
        let planned = Term::plan(term, &spec, self.context)?;
        Ok(without_columns(Expr::Term(planned), ty, term_text(term)))
    }

    /// The error for a term whose type cannot be inferred.
    fn untyped(&self, term: &ast::Term) -> Error {
        match functions::operation_function(term, None, self.context) {
            Err(refused) => refused,
            Ok(_) => cannot_infer(&term.to_string()),
        }
    }

    /// The type that a term has in any context; `None` for a literal without a type hint.
    fn exact_type(&self, term: &ast::Term) -> Result<Option<CqlType>, Error> {
        Ok(match term {
            ast::Term::TypeHint { type_name, .. } => Some(resolve_type(
                type_name,
                Some(&self.table.keyspace),
                self.context.schema,
            )?),
            ast::Term::Arithmetic { .. } | ast::Term::Negate(_) => {
                Argument::Term(term).known_type(self.context)
            }
            _ => None,
        })
    }

    /// A column.
    pub(super) fn column(&mut self, name: &str) -> Result<Compiled, Error> {
        let column = existing(self.table, name)?.clone();

        Ok(Compiled {
            ty: column.ty.clone(),
            text: name.to_owned(),
            expr: Expr::of_column(column, self.masks),
            is_aggregate: false,
            has_column: true,
        })
    }

    fn aggregate(
        &mut self,
        kind: AggregateKind,
        argument: Option<Expr>,
        ty: CqlType,
        text: String,
    ) -> Compiled {
        let result = kind.result_type(&ty).unwrap_or_else(|| ty.clone());
        self.push_aggregate(AggregatePlan::Native { kind, argument, ty }, result, text)
    }

    /// Adds an aggregate; returns the expression for its result.
    pub(super) fn push_aggregate(&mut self, plan: AggregatePlan, result: CqlType, text: String) -> Compiled {
        self.aggregates.push(plan);
        Compiled {
            expr: Expr::Aggregate(self.aggregates.len() - 1),
            ty: result,
            text,
            is_aggregate: true,
            has_column: false,
        }
    }

    fn operand(&mut self, selector: &Selector) -> Result<Operand, Error> {
        match as_term(selector) {
            Some(term) => Ok(Operand::Term(term)),
            None => self.compile(selector, None).map(Operand::Compiled),
        }
    }

    fn function(
        &mut self,
        name: &ast::QualifiedName,
        arguments: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        let operands = arguments
            .iter()
            .map(|argument| self.operand(argument))
            .collect::<Result<Vec<_>, _>>()?;
        let is_native = name
            .keyspace
            .as_deref()
            .is_none_or(|keyspace| keyspace == "system");
        if is_native
            && name.name == "count"
            && matches!(arguments, [Selector::Literal(ast::Literal::Integer(_))])
        {
            return self.compile(&Selector::CountRows, expected);
        }
        if let Some(kind) = AggregateKind::named(&name.name).filter(|_| is_native) {
            return self.native_aggregate(kind, operands);
        }
        let arguments: Vec<Argument<'_>> = operands.iter().map(Operand::argument).collect();
        let table = Some((self.table.keyspace.as_str(), self.table.name.as_str()));
        let function = functions::scalar_function(name, &arguments, expected, table, self.context);
        drop(arguments);
        match function {
            Ok(Some(function)) => {
                let texts: Vec<String> = operands.iter().map(Operand::text).collect();
                let text = format!("{}({})", function.qualified_name(), texts.join(", "));
                self.call(function, operands, text)
            }
            // An aggregate of this name may take arguments that no function of this name takes.
            Ok(None) | Err(Error::Invalid(_)) if self.has_user_aggregate(name) => {
                self.user_aggregate(name, operands)
            }
            Ok(None) => Err(Error::invalid(format!("Unknown function '{}'", print_name(name)))),
            Err(refused) => Err(refused),
        }
    }

    fn native_aggregate(
        &mut self,
        kind: AggregateKind,
        mut operands: Vec<Operand>,
    ) -> Result<Compiled, Error> {
        let texts: Vec<String> = operands.iter().map(Operand::text).collect();
        let text = format!("system.{}({})", kind.name(), texts.join(", "));
        let (Some(operand), true) = (operands.pop(), operands.is_empty()) else {
            return Err(Error::Invalid(kind.wrong_count(texts.len())));
        };
        let known = operand.argument().known_type(self.context);
        let argument = match operand {
            Operand::Compiled(compiled) => compiled,
            Operand::Term(term) => self.constant(&term, known.as_ref())?,
        };
        if argument.is_aggregate {
            return Err(Error::invalid(
                "aggregate functions cannot be used as arguments of aggregate functions",
            ));
        }
        if kind.result_type(&argument.ty).is_none() {
            return Err(Error::Invalid(kind.no_signature()));
        }
        Ok(self.aggregate(kind, Some(argument.expr), argument.ty, text))
    }

    /// A call of a resolved function.
    fn call(
        &mut self,
        function: Arc<ScalarFunction>,
        operands: Vec<Operand>,
        text: String,
    ) -> Result<Compiled, Error> {
        let table = self.spec("", CqlType::Empty);
        let mut arguments = Vec::with_capacity(operands.len());
        let (mut is_aggregate, mut has_column) = (false, false);
        for (index, operand) in operands.into_iter().enumerate() {
            arguments.push(match operand {
                Operand::Compiled(compiled) => {
                    is_aggregate |= compiled.is_aggregate;
                    has_column |= compiled.has_column;
                    compiled.expr
                }
                Operand::Term(term) => {
                    let spec = function.argument_spec(index, &table.keyspace, &table.table)?;
                    Expr::Term(Term::plan(&term, &spec, self.context)?)
                }
            });
        }

        Ok(Compiled {
            ty: function.result_type().clone(),
            expr: Expr::Call { function, arguments },
            text,
            is_aggregate,
            has_column,
        })
    }

    fn cast(&mut self, selector: &Selector, native_type: ast::NativeType) -> Result<Compiled, Error> {
        let operand = self.operand(selector)?;
        let name = native_type.to_string();
        let to = CqlType::scalar(&name)
            .ok_or_else(|| Error::ServerError(format!("native type {name} is not known")))?;
        let function = functions::cast_to(&operand.argument(), &to, self.context)?;
        // A cast to the type that the value already has is left out of the column's name.
        let text = match operand.argument().known_type(self.context) {
            Some(from) if from == to => operand.text(),
            _ => format!("cast({} as {to})", operand.text()),
        };
        self.call(function, vec![operand], text)
    }

    fn arithmetic(
        &mut self,
        operator: ast::ArithmeticOperator,
        left: &Selector,
        right: &Selector,
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        let operands = [self.operand(left)?, self.operand(right)?];
        let arguments = [operands[0].argument(), operands[1].argument()];
        let function = functions::arithmetic_function(operator, &arguments, expected, self.context)?;
        let grouped = |selector: &Selector, text: String| match binds_weaker(selector, operator) {
            true => format!("({text})"),
            false => text,
        };
        let left = grouped(left, operands[0].text());
        let right = match right {
            Selector::Arithmetic { operator: inner, .. }
                if operator.is_multiplicative() || !inner.is_multiplicative() =>
            {
                format!("({})", operands[1].text())
            }
            _ => operands[1].text(),
        };
        let text = format!("{left} {} {right}", operator.symbol());
        self.call(function, Vec::from(operands), text)
    }

    fn negation(&mut self, of: &Selector, expected: Option<&CqlType>) -> Result<Compiled, Error> {
        let operand = self.operand(of)?;
        let function = functions::negation_function(&operand.argument(), expected, self.context)?;
        let text = match of {
            Selector::Arithmetic { .. } => format!("-({})", operand.text()),
            _ => format!("-{}", operand.text()),
        };
        self.call(function, vec![operand], text)
    }

    fn hint(&mut self, type_name: &ast::CqlTypeName, selector: &Selector) -> Result<Compiled, Error> {
        let ty = resolve_type(type_name, Some(&self.table.keyspace), self.context.schema)?;
        let inner = self.compile(selector, Some(&ty))?;
        if test_type_assignment(&ty, &inner.ty) == Assignment::No {
            return Err(Error::invalid(format!(
                "Cannot assign value ({type_name}){} to ({type_name}){} of type {ty}",
                inner.text, inner.text
            )));
        }
        let text = match selector {
            Selector::Arithmetic { .. } => format!("({type_name})({})", inner.text),
            _ => format!("({type_name}){}", inner.text),
        };
        Ok(Compiled { text, ty, ..inner })
    }
}

/// True if a selector before `operator` needs parentheses.
fn binds_weaker(selector: &Selector, operator: ast::ArithmeticOperator) -> bool {
    match selector {
        Selector::Arithmetic { operator: inner, .. } => {
            operator.is_multiplicative() && !inner.is_multiplicative()
        }
        _ => false,
    }
}

/// The text of a term in a column's name.
fn term_text(term: &ast::Term) -> String {
    match term {
        ast::Term::TypeHint { type_name, term } => format!("({type_name}){}", term_text(term)),
        term => term.to_string(),
    }
}

/// An expression without columns.
fn without_columns(expr: Expr, ty: CqlType, text: String) -> Compiled {
    Compiled {
        expr,
        ty,
        text,
        is_aggregate: false,
        has_column: false,
    }
}

pub(super) fn cannot_infer(text: &str) -> Error {
    Error::invalid(format!(
        "Cannot infer type for term {text} in selection clause (try using a cast to force a type)"
    ))
}
