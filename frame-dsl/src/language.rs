//! The languages that ppt generates, one per line.

use ppt_text::nearest;

macro_rules! languages {
    ($($(#[$doc:meta])* $case:ident: $word:literal, $option:literal, $like:expr;)*) => {
        /// A language that ppt generates.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum Language {
            $($(#[$doc])* $case,)*
        }

        impl Language {
            /// All languages.
            pub const ALL: &[Language] = &[$(Language::$case,)*];

            /// The name of the language, which is also its word in a frame file.
            pub fn word(self) -> &'static str {
                match self {
                    $(Language::$case => $word,)*
                }
            }

            /// The word for the language on a command line.
            pub fn option(self) -> &'static str {
                match self {
                    $(Language::$case => $option,)*
                }
            }

            /// Other common names, in lower case.
            fn like(self) -> &'static [&'static str] {
                match self {
                    $(Language::$case => &$like,)*
                }
            }
        }
    };
}

languages! {
    C: "C", "c", ["c11", "c99"];
    Cpp: "C++", "cpp", ["cxx", "cc"];
    Rust: "Rust", "rust", ["rs"];
    Python: "Python", "python", ["py"];
    Java: "Java", "java", ["jvm", "jni", "kotlin"];
    Node: "Node", "node", ["js", "javascript", "nodejs", "node.js", "typescript", "ts"];
    Go: "Go", "go", ["golang", "cgo"];
}

impl Language {
    /// Whether its output includes C files.
    pub(crate) fn is_made_of_c(self) -> bool {
        match self {
            Language::C | Language::Python | Language::Java | Language::Node | Language::Go => true,
            Language::Cpp | Language::Rust => false,
        }
    }

    /// Whether its output includes headers of the C library, with their macros.
    pub(crate) fn has_c_headers(self) -> bool {
        self.is_made_of_c() || self == Language::Cpp
    }

    /// The language with this name in frame files.
    pub(crate) fn of_word(word: &str) -> Option<Language> {
        Self::ALL.iter().copied().find(|language| language.word() == word)
    }

    /// The most similar language name.
    pub(crate) fn nearest(word: &str) -> Option<&'static str> {
        let lower = word.to_ascii_lowercase();
        let is_meant = |language: &&Language| {
            language.word().eq_ignore_ascii_case(&lower)
                || language.option() == lower
                || language.like().contains(&&*lower)
        };
        match Self::ALL.iter().find(is_meant) {
            Some(it) => Some(it.word()),
            // A single letter is similar to everything.
            None => nearest(word, Self::spellings().filter(|spelling| spelling.len() > 3)),
        }
    }

    /// Their words, in order.
    pub(crate) fn spellings() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|language| language.word())
    }
}
