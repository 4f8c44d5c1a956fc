//! Text: how wide it is, about, and where it fits.

/// Width of a text in some size, rather too wide than too narrow.
pub(super) fn width(text: &str, size: u64) -> u64 {
    let tenths: u64 = text.chars().map(tenths).sum();
    (tenths * size).div_ceil(100)
}

/// Width of a character in hundredths of its size.
fn tenths(c: char) -> u64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' => 32,
        ' ' | 'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' | '`' => 42,
        'm' | 'w' | 'M' | 'W' | '→' | '%' | '@' => 92,
        'A'..='Z' => 70,
        c if u32::from(c) >= 0x1100 => 104,
        _ => 61,
    }
}

/// A text, cut short with an ellipsis where it is too wide.
pub(super) fn shortened(text: &str, size: u64, room: u64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept, size) + width("…", size) > room {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

/// Lines of a text, none wider than some room, at most `most` of them.
pub(super) fn wrapped(text: &str, size: u64, room: u64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            last.push_str(" …");
        }
    }
    lines.into_iter().map(|line| shortened(&line, size, room)).collect()
}

/// Places of a row that are taken.
pub(super) struct Room {
    taken: Vec<(u64, u64)>,
    left: u64,
    right: u64,
}

impl Room {
    pub(super) fn new(left: u64, right: u64) -> Self {
        Self { taken: Vec::new(), left, right }
    }

    pub(super) fn take(&mut self, left: u64, right: u64) {
        self.taken.push((left, right));
    }

    /// Where the longest of some texts that fits beside a bar goes: behind it,
    /// else before it. Takes the place.
    pub(super) fn beside<'t>(&mut self, bar: (u64, u64), texts: &'t [String], size: u64) -> Option<(u64, &'t str)> {
        const GAP: u64 = 7;
        for text in texts {
            let wide = width(text, size);
            let places = [Some(bar.1 + GAP), bar.0.checked_sub(GAP + wide)];
            for begins in places.into_iter().flatten() {
                let ends = begins + wide;
                let free = self.taken.iter().all(|(left, right)| ends + 3 <= *left || right + 3 <= begins);
                if free && begins >= self.left && ends <= self.right {
                    self.take(begins, ends);
                    return Some((begins, text));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_end_with_an_ellipsis_within_their_room() {
        let text = "a component of a long name";
        assert_eq!(shortened(text, 12, 500), text);
        let short = shortened(text, 12, 60);
        assert!(short.ends_with('…') && width(&short, 12) <= 60, "{short}");
    }

    #[test]
    fn text_is_wrapped_between_words_and_bounded() {
        assert_eq!(wrapped("one two three", 10, 45, 9), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 10, 45, 1), ["one t…"]);
        assert!(wrapped(&"x".repeat(500), 10, 100, 3).iter().all(|line| width(line, 10) <= 100));
    }

    #[test]
    fn a_label_goes_behind_its_bar_or_before_it_or_is_left_out() {
        let texts = ["1.0.0 → 2.0.0".to_owned(), "2.0.0".to_owned()];
        let mut room = Room::new(0, 300);
        room.take(10, 150);
        assert_eq!(room.beside((10, 150), &texts, 11), Some((157, "1.0.0 → 2.0.0")));
        let mut room = Room::new(0, 300);
        room.take(240, 290);
        assert_eq!(room.beside((240, 290), &texts, 11).map(|(_, text)| text), Some("1.0.0 → 2.0.0"));
        let mut room = Room::new(0, 300);
        room.take(5, 290);
        assert_eq!(room.beside((5, 290), &texts, 11), None);
    }
}
