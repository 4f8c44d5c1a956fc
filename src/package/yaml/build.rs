//! From parser events to [`Node`]s, within the limits.

use std::collections::BTreeMap;

use granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle, ScanError, Span as EventSpan, StrInput, StructureStyle, Tag, options,
};
use serde_json::Number;

use super::escape::refused_by_go;
use super::flow::{disputed, is_anchor_name, is_long_key};
use super::merge::finish_mapping;
use super::node::{Content, Entry, Node};
use super::scalar::resolve;
use super::tabs::{self, Style, Token};
use super::{Documents, MAX_ALIAS_TEXT, MAX_DEPTH, MAX_DOCUMENTS, MAX_NODES, MAX_SCALAR, Problem, markers};
use crate::package::source::Span;
use crate::package::violation::Code;

/// Reads every document of a text.
///
/// A document that cannot be understood or exceeds a limit is left out and the
/// next one read; one with a lesser problem (a key that occurs twice) is there,
/// so that the rest of it can be checked as well.
pub fn parse(text: &str) -> Documents {
    let options = options! {
        emit_comments: false,
        emit_anchor_events: true,
        flow_nesting_limit: 2 * MAX_DEPTH,
        block_nesting_limit: 2 * MAX_DEPTH,
    };
    let tokens = text.contains('\t').then(Vec::new);
    let mut builder = Builder { text, tokens, ..Builder::default() };
    let mut parser = Parser::new_from_str_with_options(text, options);
    while let Some(event) = parser.next() {
        let step = match event {
            Ok((event, span)) => builder.event(event, bytes(span)),
            Err(error) => {
                builder.report(syntax_problem(text, &error));
                Step::SkipDocument
            }
        };
        match step {
            Step::Continue => {}
            Step::SkipDocument if next_document(&mut parser, &mut builder) => {}
            Step::SkipDocument | Step::Stop => break,
        }
    }
    let tab = builder.tokens.as_deref().and_then(|tokens| tabs::refused_by_go(text, tokens)).map(tab_problem);
    let mut documents = builder.documents;
    let of_lines = disputed_line_end(text).into_iter().chain(late_byte_order_mark(text)).chain(tab);
    for problem in of_lines.chain(markers::problems(text)) {
        if documents.problems.iter().all(|other| other.span.start != problem.span.start) {
            documents.problems.push(problem);
        }
    }
    documents.problems.sort_by_key(|problem| problem.span.start);
    documents
}

/// Characters that end a line in YAML 1.1, which Go reads, and are text in YAML
/// 1.2: what one reader takes for a comment is a field to the other.
fn disputed_line_end(text: &str) -> Option<Problem> {
    let (start, found) = text.match_indices(['\u{85}', '\u{2028}', '\u{2029}']).next()?;
    let number = found.chars().next().map_or(0, u32::from);
    Some(Problem {
        code: Code::Syntax,
        span: Span { start, end: start + found.len() },
        message: format!("U+{number:04X} ends a line for some readers and is text to others"),
        help: format!("remove it, or write it as \"\\u{number:04x}\" in double quotes"),
    })
}

/// Go reads a byte order mark further down as part of the key behind it.
fn late_byte_order_mark(text: &str) -> Option<Problem> {
    let start = text.find("\n\u{feff}")? + 1;
    Some(Problem {
        code: Code::Syntax,
        span: Span { start, end: start + '\u{feff}'.len_utf8() },
        message: "a byte order mark stands only at the start of a file".into(),
        help: "remove it: it is invisible, and comes from files that were joined".into(),
    })
}

fn tab_problem(span: Span) -> Problem {
    let message = "Kubernetes tools refuse a tab here".into();
    Problem { code: Code::Syntax, span, message, help: NO_TABS.into() }
}

const NO_TABS: &str = "YAML is indented with spaces, not with tabs";

fn next_document<'a>(parser: &mut Parser<'a, StrInput<'a>>, builder: &mut Builder<'a>) -> bool {
    builder.abandon();
    // What is not read cannot be told from what stands between scalars.
    builder.tokens = None;
    parser.proceed_next_document().unwrap_or(false)
}

fn bytes(span: EventSpan) -> Span {
    span.byte_range().map_or_else(Span::default, |range| Span { start: range.start, end: range.end })
}

fn syntax_problem(text: &str, error: &ScanError) -> Problem {
    let code = if *error.kind() == ErrorKind::RecursionLimitExceeded { Code::TooLarge } else { Code::Syntax };
    let start = error.marker().byte_offset().unwrap_or_default().min(text.len());
    let mut end = start + text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    if text.get(start..end) == Some("\n") {
        end = start;
    }
    let line = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let line = text.get(line..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    // What the parser calls it is its own affair.
    let message = if code == Code::TooLarge { format!("nested deeper than {MAX_DEPTH} levels") } else { error.info() };
    let help = if code == Code::TooLarge { TOO_DEEP } else { syntax_help(&message, line) };
    Problem { code, span: Span { start, end }, help: help.into(), message }
}

/// What to do with what is nested too deeply.
const TOO_DEEP: &str = "no chart has values as deep as that: write them on fewer levels";

/// What to do about a line that cannot be read, as far as the commonest mistakes
/// can be told from what the parser says.
fn syntax_help(message: &str, line: &str) -> &'static str {
    if line.contains("{{") {
        "this looks like a template: render it first, Package files are plain YAML"
    } else if line.starts_with('\t') || line.trim_start_matches(' ').starts_with('\t') {
        NO_TABS
    } else if message.contains("mapping values are not allowed") {
        "indent the line like those beside it; if it is text with `: ` in it, put it in quotes"
    } else if message.contains("block scalar") {
        "text that begins with `>` or `|` is put in quotes"
    } else if message.contains("anchor or alias") {
        "text that begins with `*` or `&` is put in quotes"
    } else if line.contains("${") && message.contains("expected ',' or") {
        "put text with `${…}` in quotes: between brackets a `{` begins a map"
    } else if message.contains("illegal placement of ':'") || message.contains("expected ',' or") {
        "a `[` or `{` further up is not closed"
    } else if message.contains("did not find expected key") || message.contains("expected <block end>") {
        "indent the line like those beside it; behind `[…]`, `{…}` or text nothing more follows"
    } else if message.contains("expected <document start>") {
        "indent the line like those above it: Kubernetes tools would leave out what follows"
    } else if message.contains("invalid trailing content") {
        "nothing follows a closing quote: put the whole text in quotes"
    } else if message.contains("may not precede any of") {
        "write a space behind the `:`; if it is text, put it in quotes"
    } else if message.contains("unclosed quote") {
        "close it with the quote it begins with"
    } else if message.contains("unexpected character") {
        "remove it, or write it as an escape in double quotes"
    } else {
        ""
    }
}

enum Step {
    Continue,
    SkipDocument,
    Stop,
}

enum Frame {
    Sequence { items: Vec<Node>, span: Span, anchor: usize },
    Mapping { entries: Vec<Entry>, key: Option<Key>, span: Span, anchor: usize },
}

pub(super) struct Key {
    pub text: String,
    pub span: Span,
    pub plain: bool,
}

#[derive(Default)]
struct Builder<'t> {
    text: &'t str,
    documents: Documents,
    frames: Vec<Frame>,
    /// How many frames are around the outermost one between brackets.
    flow: Option<usize>,
    anchors: BTreeMap<usize, Node>,
    count: usize,
    nodes: usize,
    alias_text: usize,
    /// Scalars in their order; `None`: nobody asks for them.
    tokens: Option<Vec<Token>>,
}

impl Builder<'_> {
    fn report(&mut self, problem: Problem) {
        self.documents.problems.push(problem);
    }

    fn problem(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) {
        self.report(Problem { code, span, message: message.into(), help: help.into() });
    }

    fn abandon(&mut self) {
        self.frames.clear();
        self.flow = None;
        self.anchors.clear();
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Step {
        match event {
            Event::DocumentStart(is_marked, _) => {
                self.abandon();
                self.count += 1;
                if is_marked && !markers::begins_line(self.text, span.start) {
                    self.report(markers::behind_carriage_return(span));
                } else if !is_marked && self.count > 1 {
                    self.report(markers::unmarked(span.start));
                }
                if self.count > MAX_DOCUMENTS {
                    let message = format!("more than {MAX_DOCUMENTS} documents");
                    self.problem(Code::TooLarge, span, message, "split the file");
                    return Step::Stop;
                }
                Step::Continue
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), span),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Anchor(_, name) => self.anchor(&name, span),
            Event::SequenceStart(style, anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", span);
                self.open(Frame::Sequence { items: Vec::new(), span, anchor }, style, span)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", span);
                self.open(Frame::Mapping { entries: Vec::new(), key: None, span, anchor }, style, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            // Starts and ends of the stream and of documents, and what is not asked for.
            _ => Step::Continue,
        }
    }

    fn anchor(&mut self, name: &str, span: Span) -> Step {
        if !is_anchor_name(name) {
            let message = format!("readers disagree on where the anchor `{}` ends", shorten(name));
            self.problem(Code::Syntax, span, message, "name it with letters, digits, `_` and `-`");
        }
        Step::Continue
    }

    fn open(&mut self, frame: Frame, style: StructureStyle, span: Span) -> Step {
        if self.frames.len() >= MAX_DEPTH {
            self.problem(Code::TooLarge, span, format!("nested deeper than {MAX_DEPTH} levels"), TOO_DEEP);
            return Step::SkipDocument;
        }
        if style == StructureStyle::Flow && self.flow.is_none() {
            self.flow = Some(self.frames.len());
        }
        self.frames.push(frame);
        Step::Continue
    }

    fn close(&mut self, end: Span) -> Step {
        let (content, span, anchor) = match self.frames.pop() {
            Some(Frame::Sequence { items, span, anchor }) => (Content::Sequence(items), span, anchor),
            Some(Frame::Mapping { entries, span, anchor, .. }) => {
                let (entries, problems) = finish_mapping(entries);
                problems.into_iter().for_each(|problem| self.report(problem));
                (Content::Mapping(entries), span, anchor)
            }
            None => return Step::Continue,
        };
        if self.flow == Some(self.frames.len()) {
            self.flow = None;
        }
        let span = Span { start: span.start, end: end.end.max(span.end) };
        self.place(Node { content, span, plain: false }, anchor)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Option<&Tag>, span: Span) -> Step {
        if text.len() > MAX_SCALAR {
            let message = format!("a text of {} bytes, at most {MAX_SCALAR} are allowed", text.len());
            self.problem(Code::TooLarge, span, message, "no Kubernetes object can hold it");
            return Step::SkipDocument;
        }
        if style == ScalarStyle::DoubleQuoted {
            self.escapes(span);
        } else if style == ScalarStyle::Plain && self.flow.is_some() {
            self.between_brackets(tag.is_some(), span);
        }
        if let Some(tokens) = &mut self.tokens {
            tokens.push(Token { span, style: style_of(style) });
        }
        // The parser writes an absent value as `~`.
        let text = if span.start == span.end && style == ScalarStyle::Plain { "" } else { text };
        let content = self.typed(text, style, tag, span);
        let plain = style == ScalarStyle::Plain && tag.is_none();
        self.place(Node { content, span, plain }, anchor)
    }

    fn between_brackets(&mut self, tagged: bool, span: Span) {
        if let Some(disputed) = disputed(self.text, span) {
            let written = self.text.get(disputed.span.start..disputed.span.end).map(shorten).unwrap_or_default();
            let message = format!("readers disagree about `{written}` between brackets");
            self.problem(Code::Syntax, disputed.span, message, disputed.help);
        } else if tagged && span.start == span.end {
            let message = "readers disagree on where a tag without a value ends between brackets";
            self.problem(Code::Syntax, span, message, "write the value, such as `\"\"`");
        }
    }

    fn escapes(&mut self, span: Span) {
        let written = self.text.get(span.start..span.end).unwrap_or_default();
        if let Some((at, help)) = refused_by_go(written) {
            let message =
                format!("the escape `{}` is an error to Kubernetes tools", written.get(at.clone()).unwrap_or_default());
            let span = Span { start: span.start + at.start, end: span.start + at.end };
            self.problem(Code::Syntax, span, message, help);
        }
    }

    fn typed(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Content {
        let text_content = || Content::Text(text.to_owned());
        let resolved = match tag.map(|tag| (tag.core_suffix(), tag.is_custom())) {
            None if style == ScalarStyle::Plain => resolve(text),
            None | Some((Some("str"), _)) => Ok(text_content()),
            Some((Some(wanted @ ("int" | "float" | "bool" | "null")), _)) => {
                let resolved = resolve(text);
                if !resolved.as_ref().is_ok_and(|content| tag_fits(wanted, content)) {
                    self.problem(
                        Code::Syntax,
                        span,
                        format!("`{}` is no {wanted}", shorten(text)),
                        "remove the tag, or write a value of its type",
                    );
                }
                resolved
            }
            Some(_) => {
                let tag = tag.map(Tag::original).unwrap_or_default();
                // Of `! true` one reader makes text, another drops the tag.
                let is_text = style != ScalarStyle::Plain || resolve(text) == Ok(text_content());
                if tag != "!" || !is_text {
                    let help = "write the value as plain YAML: Kubernetes tools do not agree on tags";
                    let message = format!("the tag `{}` is not supported", shorten(&tag));
                    self.problem(Code::Syntax, self.place_of_tag(&tag, span), message, help);
                }
                if style == ScalarStyle::Plain { resolve(text) } else { Ok(text_content()) }
            }
        };
        resolved.unwrap_or_else(|_| {
            let help = "quote it if text is meant";
            self.problem(Code::WrongType, span, format!("JSON has no number `{}`", shorten(text)), help);
            text_content()
        })
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, core: &str, span: Span) {
        if let Some(tag) = tag.filter(|tag| tag.core_suffix() != Some(core)) {
            let help = "remove it: Kubernetes tools do not agree on tags";
            let tag = tag.original();
            let message = format!("the tag `{}` is not supported", shorten(&tag));
            self.problem(Code::Syntax, self.place_of_tag(&tag, span), message, help);
        }
    }

    /// Where a tag is written: the last of its kind before the value.
    fn place_of_tag(&self, tag: &str, value: Span) -> Span {
        let before = self.text.get(..value.start).unwrap_or_default();
        let found = Some(tag).filter(|tag| !tag.is_empty()).and_then(|tag| before.rfind(tag));
        found.map_or(value, |start| Span { start, end: start + tag.len() })
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Step {
        let Some(node) = self.anchors.get(&anchor) else {
            self.problem(
                Code::Syntax,
                span,
                "the anchor is not complete here: it would contain itself",
                "write the value out",
            );
            return Step::SkipDocument;
        };
        let size = Size::of(node);
        if !self.afford(&size) {
            let help = "write the values out: so much from so little is no honest file";
            self.problem(Code::TooLarge, span, "aliases multiply beyond the limits", help);
            return Step::SkipDocument;
        }
        if self.frames.len() + size.depth > MAX_DEPTH {
            self.problem(Code::TooLarge, span, format!("nested deeper than {MAX_DEPTH} levels"), TOO_DEEP);
            return Step::SkipDocument;
        }
        match self.anchors.get(&anchor).cloned() {
            Some(node) => self.place(node, 0),
            None => Step::Continue,
        }
    }

    /// Whether a copy of a node still fits; counts it.
    fn afford(&mut self, size: &Size) -> bool {
        self.nodes = self.nodes.saturating_add(size.nodes);
        self.alias_text = self.alias_text.saturating_add(size.text);
        self.nodes <= MAX_NODES && self.alias_text <= MAX_ALIAS_TEXT
    }

    fn place(&mut self, node: Node, anchor: usize) -> Step {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.problem(
                Code::TooLarge,
                node.span,
                format!("more than {MAX_NODES} values in one file"),
                "split the file",
            );
            return Step::Stop;
        }
        if anchor != 0 {
            if !self.afford(&Size::of(&node)) {
                self.problem(Code::TooLarge, node.span, "anchors multiply beyond the limits", "write the values out");
                return Step::SkipDocument;
            }
            self.anchors.insert(anchor, node.clone());
        }
        match self.frames.last_mut() {
            None => self.documents.documents.push(node),
            Some(Frame::Sequence { items, .. }) => items.push(node),
            Some(Frame::Mapping { entries, key, .. }) => match key.take() {
                Some(Key { text, span, plain }) => {
                    entries.push(Entry { key: text, key_span: span, key_plain: plain, value: node });
                }
                None => return self.key(node),
            },
        }
        Step::Continue
    }

    fn key(&mut self, node: Node) -> Step {
        if self.flow.is_some() && is_long_key(self.text, node.span) {
            let message = "a key between brackets and its `:` are on more than one line";
            self.problem(Code::Syntax, node.span, message, "write them on one: Kubernetes tools read nothing else");
        }
        let text = match node.content {
            Content::Text(text) => text,
            Content::Bool(value) => value.to_string(),
            Content::Number(number) if number.as_i64().is_none() && number.is_u64() => {
                let message =
                    format!("`{number}` cannot be a key: Kubernetes tools take no integer beyond 64 bits signed");
                self.problem(Code::Syntax, node.span, message, "put it in quotes");
                number.to_string()
            }
            Content::Number(number) => number_key(&number),
            Content::Null | Content::Sequence(_) | Content::Mapping(_) => {
                let help = "a key is text; if this comes from `{{ … }}`, render the template first, or quote the value";
                self.problem(Code::Syntax, node.span, format!("{} cannot be a key", node.kind()), help);
                String::new()
            }
        };
        if let Some(Frame::Mapping { key, .. }) = self.frames.last_mut() {
            *key = Some(Key { text, span: node.span, plain: node.plain });
        }
        Step::Continue
    }
}

fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    }
}

/// A number as the key that sigs.k8s.io/yaml makes of it: Go's shortest text of
/// a float of 32 bits, `1e+06` from a million on.
fn number_key(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    // Rounding to 32 bits is what is asked for.
    let float = float as f32;
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => float.to_string(),
    }
}

fn tag_fits(tag: &str, content: &Content) -> bool {
    match content {
        Content::Null => tag == "null",
        Content::Bool(_) => tag == "bool",
        Content::Number(number) => tag == "float" || (tag == "int" && !number.is_f64()),
        Content::Text(_) | Content::Sequence(_) | Content::Mapping(_) => false,
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// What a copy of a node costs.
struct Size {
    nodes: usize,
    text: usize,
    depth: usize,
}

impl Size {
    fn of(node: &Node) -> Self {
        let mut size = Self { nodes: 1, text: 0, depth: 0 };
        match &node.content {
            Content::Text(text) => size.text = text.len(),
            Content::Sequence(items) => items.iter().for_each(|item| size.add(&Self::of(item))),
            Content::Mapping(entries) => {
                for entry in entries {
                    size.text += entry.key.len();
                    size.add(&Self::of(&entry.value));
                }
            }
            Content::Null | Content::Bool(_) | Content::Number(_) => {}
        }
        size
    }

    fn add(&mut self, inner: &Self) {
        self.nodes += inner.nodes;
        self.text += inner.text;
        self.depth = self.depth.max(inner.depth + 1);
    }
}
