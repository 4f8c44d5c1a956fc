//! A template as a tree of texts, outputs and branches.

use std::collections::BTreeMap;

use super::tokens::{Token, tokens};

/// Deepest nesting of branches.
const MAX_DEPTH: u32 = 64;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node<'t> {
    /// Text that stands as it is.
    Text(&'t str),
    /// The value of a pipeline, or an assignment.
    Output {
        /// The pipeline.
        code: &'t str,
        /// Whether a line break before it was trimmed away: what it writes then
        /// begins with one.
        after_break: bool,
    },
    /// One of several.
    Branch(Branch<'t>),
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch<'t> {
    /// Which.
    pub kind: Kind,
    /// Pipelines, each with what is rendered by it.
    pub arms: Vec<(&'t str, Vec<Node<'t>>)>,
    /// What is rendered where none of them holds.
    pub otherwise: Vec<Node<'t>>,
}

/// Kinds of branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `if`.
    If,
    /// `with`: the dot is what was asked for.
    With,
    /// `range`: the dot is one item after the other.
    Range,
}

/// A template taken apart.
#[derive(Debug, Default)]
pub struct Tree<'t> {
    /// What the file itself renders.
    pub nodes: Vec<Node<'t>>,
    /// What it defines, by name.
    pub defines: BTreeMap<&'t str, Vec<Node<'t>>>,
}

/// Takes a template apart; `None` if it is malformed or does what is not known here.
pub fn parse(text: &str) -> Option<Tree<'_>> {
    let mut parser = Parser { tokens: tokens(text)?.into_iter(), defines: BTreeMap::new() };
    let (nodes, Ended::Nowhere) = parser.nodes(0)? else { return None };
    Some(Tree { nodes, defines: parser.defines })
}

struct Parser<'t> {
    tokens: std::vec::IntoIter<Token<'t>>,
    defines: BTreeMap<&'t str, Vec<Node<'t>>>,
}

/// What a list of nodes ended with.
enum Ended<'t> {
    /// `end`.
    End,
    /// `else`, and what is behind it.
    Else(&'t str),
    /// The text.
    Nowhere,
}

impl<'t> Parser<'t> {
    fn nodes(&mut self, depth: u32) -> Option<(Vec<Node<'t>>, Ended<'t>)> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut nodes = Vec::new();
        while let Some(token) = self.tokens.next() {
            let (code, after_break) = match token {
                Token::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Token::Action { code, after_break } => (code, after_break),
            };
            let (word, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
            match word {
                "" => {}
                "end" => return Some((nodes, Ended::End)),
                "else" => return Some((nodes, Ended::Else(rest.trim_start()))),
                "if" => nodes.push(Node::Branch(self.branch(Kind::If, rest, depth)?)),
                "with" => nodes.push(Node::Branch(self.branch(Kind::With, rest, depth)?)),
                "range" => nodes.push(Node::Branch(self.branch(Kind::Range, rest, depth)?)),
                "define" | "block" => {
                    let (body, Ended::End) = self.nodes(depth + 1)? else { return None };
                    self.defines.insert(quoted(rest)?, body);
                    if word == "block" {
                        nodes.push(Node::Output { code, after_break });
                    }
                }
                "break" | "continue" => return None,
                _ => nodes.push(Node::Output { code, after_break }),
            }
        }
        Some((nodes, Ended::Nowhere))
    }

    fn branch(&mut self, kind: Kind, condition: &'t str, depth: u32) -> Option<Branch<'t>> {
        let word = match kind {
            Kind::If => "if",
            Kind::With => "with",
            Kind::Range => "",
        };
        let mut branch = Branch { kind, arms: Vec::new(), otherwise: Vec::new() };
        let mut condition = condition;
        loop {
            let (body, ended) = self.nodes(depth + 1)?;
            branch.arms.push((condition, body));
            let more = match ended {
                Ended::End => return Some(branch),
                Ended::Nowhere => return None,
                Ended::Else(more) => more,
            };
            if !more.is_empty() {
                // `else if` belongs to `if`, `else with` to `with`.
                condition = more.strip_prefix(word).filter(|rest| rest.starts_with(char::is_whitespace))?;
                continue;
            }
            let (otherwise, Ended::End) = self.nodes(depth + 1)? else { return None };
            branch.otherwise = otherwise;
            return Some(branch);
        }
    }
}

/// The name in the quotes that a text begins with.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '`'))?;
    text.get(1..)?.split_once(quote).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_and_definitions_nest() {
        let tree = parse(
            "{{ if .a }}x{{ else if .b }}y{{ else }}{{ with .c }}z{{ end }}{{ end }}{{ define \"n\" }}d{{ end }}",
        );
        let tree = tree.unwrap();
        let text = |text| vec![Node::Text(text)];
        let with = Branch { kind: Kind::With, arms: vec![(".c", text("z"))], otherwise: vec![] };
        let arms = vec![(".a", text("x")), (" .b", text("y"))];
        let otherwise = vec![Node::Branch(with)];
        assert_eq!(tree.nodes, [Node::Branch(Branch { kind: Kind::If, arms, otherwise })]);
        assert_eq!(tree.defines, BTreeMap::from([("n", text("d"))]));
    }

    #[test]
    fn what_is_malformed_or_jumps_is_not_read() {
        for text in
            ["{{ if .a }}", "{{ end }}", "{{ else }}", "{{ range .a }}{{ break }}{{ end }}", "{{ define n }}{{ end }}"]
        {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(parse(&"{{ if .a }}".repeat(1000)).is_none());
    }
}
