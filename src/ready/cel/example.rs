//! An object for which an expression holds, told from the expression's text.

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, LiteralValue, operators};
use serde_json::{Map, Value};

use super::Expression;

/// What stands for a text that nobody states.
const ANY_TEXT: &str = "example";

impl Expression {
    /// Gives `object` what the expression asks of it: fields that are compared
    /// with literals, versions or each other, items of lists that must exist.
    /// A guess: only evaluation tells whether it holds for what comes of it.
    pub fn suggest(&self, object: &mut Value, version: &str, from_version: &str) {
        let mut wish = Wish { object, version, from_version };
        wish.want(&self.inner.tree, true, &Vec::new());
    }
}

/// One step of a path in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

type Path = Vec<Step>;
/// Variables of `exists` and `all`, and the item each of them stands for.
type Bound = Vec<(String, Path)>;

/// How a field is to compare with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    Other,
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Relation {
    fn of(operator: &str) -> Option<Self> {
        Some(match operator {
            operators::EQUALS => Self::Equal,
            operators::NOT_EQUALS => Self::Other,
            operators::GREATER => Self::Above,
            operators::GREATER_EQUALS => Self::AtLeast,
            operators::LESS => Self::Below,
            operators::LESS_EQUALS => Self::AtMost,
            _ => return None,
        })
    }

    fn denied(self) -> Self {
        match self {
            Self::Equal => Self::Other,
            Self::Other => Self::Equal,
            Self::Above => Self::AtMost,
            Self::AtLeast => Self::Below,
            Self::Below => Self::AtLeast,
            Self::AtMost => Self::Above,
        }
    }

    /// The same, seen from the other side.
    fn turned(self) -> Self {
        match self {
            Self::Equal | Self::Other => self,
            Self::Above => Self::Below,
            Self::AtLeast => Self::AtMost,
            Self::Below => Self::Above,
            Self::AtMost => Self::AtLeast,
        }
    }

    /// A value that compares so with another.
    fn example(self, other: &Value) -> Value {
        let shifted = |by: i64| other.as_i64().map_or_else(|| other.clone(), |number| number.saturating_add(by).into());
        match self {
            Self::Equal | Self::AtLeast | Self::AtMost => other.clone(),
            Self::Above => shifted(1),
            Self::Below => shifted(-1),
            Self::Other => match other {
                Value::Bool(truth) => (!truth).into(),
                Value::Number(_) => shifted(1),
                Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => ANY_TEXT.into(),
            },
        }
    }
}

struct Wish<'w> {
    object: &'w mut Value,
    version: &'w str,
    from_version: &'w str,
}

impl Wish<'_> {
    fn want(&mut self, node: &IdedExpr, truth: bool, bound: &Bound) {
        match &node.expr {
            Expr::Call(call) => self.want_call(node, call, truth, bound),
            Expr::Comprehension(walk) => self.want_item(walk, truth, bound),
            Expr::Select(select) if select.test => {
                if let (true, Some(mut path)) = (truth, self.path(&select.operand, bound)) {
                    path.push(Step::Field(select.field.clone()));
                    if self.get(&path).is_none() {
                        self.put(&path, ANY_TEXT.into());
                    }
                }
            }
            Expr::Select(_)
            | Expr::Ident(_)
            | Expr::List(_)
            | Expr::Literal(_)
            | Expr::Map(_)
            | Expr::Struct(_)
            | Expr::Unspecified => self.want_truth(node, truth, bound),
        }
    }

    fn want_truth(&mut self, node: &IdedExpr, truth: bool, bound: &Bound) {
        if let Some(path) = self.path(node, bound) {
            self.put(&path, truth.into());
        }
    }

    fn want_call(&mut self, node: &IdedExpr, call: &CallExpr, truth: bool, bound: &Bound) {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND, sides) if truth => sides.iter().for_each(|side| self.want(side, true, bound)),
            (operators::LOGICAL_OR, sides) if !truth => sides.iter().for_each(|side| self.want(side, false, bound)),
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [side, ..]) => self.want(side, truth, bound),
            (operators::LOGICAL_NOT, [inner]) => self.want(inner, !truth, bound),
            (operators::CONDITIONAL, [condition, yes, _]) => {
                self.want(condition, true, bound);
                self.want(yes, truth, bound);
            }
            (operators::IN, [item, list]) => self.want_member(item, list, truth, bound),
            ("startsWith" | "endsWith" | "contains", [part]) => {
                let field = call.target.as_deref().and_then(|target| self.path(target, bound));
                if let (true, Some(field), Some(part)) = (truth, field, self.value(part, bound)) {
                    self.put(&field, part);
                }
            }
            (operator, [left, right]) => match Relation::of(operator) {
                Some(relation) => {
                    self.compare(left, right, if truth { relation } else { relation.denied() }, bound);
                }
                None => self.want_truth(node, truth, bound),
            },
            _ => self.want_truth(node, truth, bound),
        }
    }

    fn want_member(&mut self, item: &IdedExpr, list: &IdedExpr, truth: bool, bound: &Bound) {
        let (field, listed) = (self.path(item, bound), self.value(list, bound));
        if let (true, Some(field), Some(first)) = (truth, field, listed.as_ref().and_then(|all| all.get(0))) {
            self.put(&field, first.clone());
        } else if let (true, Some(list), Some(value)) = (truth, self.path(list, bound), self.value(item, bound)) {
            let end = self.length(&list);
            self.put(&child(&list, Step::Item(end)), value);
        }
    }

    /// `exists`: one more item, for which it is true. `all`: the items there are.
    fn want_item(&mut self, walk: &ComprehensionExpr, truth: bool, bound: &Bound) {
        let Some(list) = self.path(&walk.iter_range, bound) else { return };
        let Expr::Call(step) = &walk.loop_step.expr else { return };
        let Some(inner) = step.args.last() else { return };
        let with = |item: Path| [bound.as_slice(), &[(walk.iter_var.clone(), item)]].concat();
        let length = self.length(&list);
        match (step.func_name.as_str(), truth) {
            (operators::LOGICAL_OR, true) | (operators::LOGICAL_AND, false) => {
                let item = child(&list, Step::Item(length));
                self.put(&item, Value::Object(Map::new()));
                self.want(inner, truth, &with(item));
            }
            (operators::LOGICAL_OR, false) | (operators::LOGICAL_AND, true) => {
                if self.get(&list).is_none() {
                    self.put(&list, Value::Array(Vec::new()));
                }
                for position in 0..length {
                    self.want(inner, truth, &with(child(&list, Step::Item(position))));
                }
            }
            _ => {}
        }
    }

    fn compare(&mut self, left: &IdedExpr, right: &IdedExpr, relation: Relation, bound: &Bound) {
        let sides = [(left, right, relation), (right, left, relation.turned())];
        let is_field = |wish: &Self, node| wish.path(node, bound).is_some();
        // A field and a stated value first; then two fields, one of which is there.
        for fields in [1, 2] {
            for (field, other, relation) in sides {
                let count = usize::from(is_field(self, left)) + usize::from(is_field(self, right));
                let value = self.value(other, bound);
                if let (true, Some(field), Some(value)) = (count == fields, self.path(field, bound), value) {
                    return self.put(&field, relation.example(&value));
                }
            }
        }
        for (sized, other, relation) in sides {
            if let (Some(list), Some(value)) = (self.sized(sized, bound), self.value(other, bound)) {
                let length = relation.example(&value).as_u64().unwrap_or(0).min(16);
                return self.put(&list, (0..length).map(|_| Value::from(ANY_TEXT)).collect());
            }
        }
        if let (Relation::Equal, Some(left), Some(right)) = (relation, self.path(left, bound), self.path(right, bound))
        {
            self.put(&left, 1.into());
            self.put(&right, 1.into());
        }
    }

    /// The list of `size(list)` or `list.size()`.
    fn sized(&self, node: &IdedExpr, bound: &Bound) -> Option<Path> {
        let Expr::Call(call) = &node.expr else { return None };
        let list = call.target.as_deref().or(call.args.first()).filter(|_| call.func_name == "size")?;
        self.path(list, bound)
    }

    /// The field that a node reads, guarded or not.
    fn path(&self, node: &IdedExpr, bound: &Bound) -> Option<Path> {
        match &node.expr {
            Expr::Ident(name) if name == "object" => Some(Vec::new()),
            Expr::Ident(name) => bound.iter().rev().find(|(known, _)| known == name).map(|(_, path)| path.clone()),
            Expr::Select(select) if !select.test => {
                Some(child(&self.path(&select.operand, bound)?, Step::Field(select.field.clone())))
            }
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::OPT_SELECT | operators::INDEX | operators::OPT_INDEX, [operand, key]) => {
                    let step = match self.value(key, bound)? {
                        Value::String(field) => Step::Field(field),
                        index => Step::Item(usize::try_from(index.as_u64()?).ok()?),
                    };
                    Some(child(&self.path(operand, bound)?, step))
                }
                ("orValue" | "value", _) => self.path(call.target.as_deref()?, bound),
                ("string" | "int" | "dyn", [inner]) => self.path(inner, bound),
                _ => None,
            },
            Expr::Select(_)
            | Expr::Comprehension(_)
            | Expr::List(_)
            | Expr::Literal(_)
            | Expr::Map(_)
            | Expr::Struct(_)
            | Expr::Unspecified => None,
        }
    }

    /// What a node comes to without anything else being known: literals,
    /// versions, and fields that are there already.
    fn value(&self, node: &IdedExpr, bound: &Bound) -> Option<Value> {
        match &node.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) if name == "version" => Some(self.version.into()),
            Expr::Ident(name) if name == "fromVersion" => Some(self.from_version.into()),
            Expr::List(list) => list.elements.iter().map(|item| self.value(item, bound)).collect(),
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::ADD, [left, right]) => {
                    let (left, right) = (self.value(left, bound)?, self.value(right, bound)?);
                    match (left.as_str(), right.as_str()) {
                        (Some(left), Some(right)) => Some(format!("{left}{right}").into()),
                        _ => Some(left.as_i64()?.checked_add(right.as_i64()?)?.into()),
                    }
                }
                _ => self.get(&self.path(node, bound)?).cloned(),
            },
            Expr::Ident(_)
            | Expr::Select(_)
            | Expr::Comprehension(_)
            | Expr::Map(_)
            | Expr::Struct(_)
            | Expr::Unspecified => self.get(&self.path(node, bound)?).cloned(),
        }
    }

    fn get(&self, path: &[Step]) -> Option<&Value> {
        path.iter().try_fold(&*self.object, |value, step| match step {
            Step::Field(field) => value.get(field),
            Step::Item(index) => value.get(index),
        })
    }

    fn length(&self, list: &[Step]) -> usize {
        self.get(list).and_then(Value::as_array).map_or(0, Vec::len)
    }

    fn put(&mut self, path: &[Step], value: Value) {
        let mut slot = &mut *self.object;
        for step in path {
            slot = match step {
                Step::Field(field) => {
                    if !slot.is_object() {
                        *slot = Value::Object(Map::new());
                    }
                    let Value::Object(map) = slot else { return };
                    map.entry(field.clone()).or_insert(Value::Null)
                }
                Step::Item(index) => {
                    if !slot.is_array() {
                        *slot = Value::Array(Vec::new());
                    }
                    let Value::Array(list) = slot else { return };
                    // Items are added at the end, one after the other.
                    if list.len() <= *index {
                        list.push(Value::Null);
                    }
                    let Some(last) = list.len().checked_sub(1) else { return };
                    let Some(item) = list.get_mut((*index).min(last)) else { return };
                    item
                }
            };
        }
        *slot = value;
    }
}

fn child(path: &[Step], step: Step) -> Path {
    [path, &[step]].concat()
}

fn of_literal(literal: &LiteralValue) -> Option<Value> {
    Some(match literal {
        LiteralValue::Boolean(truth) => (*truth.inner()).into(),
        LiteralValue::Int(number) => (*number.inner()).into(),
        LiteralValue::UInt(number) => (*number.inner()).into(),
        LiteralValue::Double(number) => (*number.inner()).into(),
        LiteralValue::String(text) => text.inner().into(),
        LiteralValue::Null => Value::Null,
        LiteralValue::Bytes(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::ready::cel::Variables;

    #[rstest]
    #[case::version("object.status.observedVersion == 'v' + version", json!({"observedVersion": "v1.9.0"}))]
    #[case::the_other_way_round("'v' + version == object.status.observedVersion", json!({"observedVersion": "v1.9.0"}))]
    #[case::guarded("object.?status.?phase.orValue('') == 'Deployed'", json!({"phase": "Deployed"}))]
    #[case::nested("object.status.nodes.ready >= 3 && object.status.nodes.failed < 1", json!({"nodes": {"ready": 3, "failed": 0}}))]
    #[case::condition(
        "object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True') && object.status.ready",
        json!({"conditions": [{"type": "Available", "status": "True"}], "ready": true})
    )]
    #[case::two_conditions(
        "object.?status.?conditions.orValue([]).exists(c, c.type == 'A' && c.status == 'True')
         && object.?status.?conditions.orValue([]).exists(c, c.type == 'P' && c.status == 'False')",
        json!({"conditions": [{"type": "A", "status": "True"}, {"type": "P", "status": "False"}]})
    )]
    #[case::either("object.status.phase == 'Ready' || object.status.phase == 'Running'", json!({"phase": "Ready"}))]
    #[case::one_of("object.status.phase in ['Ready', 'Running']", json!({"phase": "Ready"}))]
    #[case::member("'ready' in object.status.flags", json!({"flags": ["ready"]}))]
    #[case::there("has(object.status.endpoint) && !object.status.degraded", json!({"endpoint": "example", "degraded": false}))]
    #[case::beginning("object.status.image.startsWith('registry/app:' + version)", json!({"image": "registry/app:1.9.0"}))]
    #[case::size("size(object.status.members) == 2", json!({"members": ["example", "example"]}))]
    #[case::not("!(object.status.phase == 'Failed')", json!({"phase": "example"}))]
    #[case::all("object.status.shards.all(s, s.ready)", json!({"shards": []}))]
    #[case::choice("has(object.status.v) ? object.status.v == version : false", json!({"v": "1.9.0"}))]
    #[case::key("object.status['observed-version'] == version", json!({"observed-version": "1.9.0"}))]
    fn what_is_suggested_holds(#[case] text: &str, #[case] expected: Value) {
        let expression = Expression::compile(text).unwrap();
        let mut object = json!({});
        expression.suggest(&mut object, "1.9.0", "1.8.0");
        assert_eq!(object["status"], expected);
        assert!(expression.evaluate(&Variables::ready(&object, "1.9.0", "1.8.0")).is_true());
    }

    #[test]
    fn two_fields_are_made_equal() {
        let expression = Expression::compile("object.status.readyReplicas == object.spec.replicas").unwrap();
        let mut object = json!({"spec": {"replicas": 3}});
        expression.suggest(&mut object, "1.9.0", "");
        assert_eq!(object["status"]["readyReplicas"], 3);
    }

    #[test]
    fn what_cannot_be_told_is_left_to_evaluation() {
        let expression = Expression::compile("object.status.replicas * 2 == object.status.wanted * 3").unwrap();
        let mut object = json!({});
        expression.suggest(&mut object, "1.9.0", "");
        assert!(!expression.evaluate(&Variables::ready(&object, "1.9.0", "")).is_true());
    }
}
