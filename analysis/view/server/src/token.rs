//! The token that a page needs for answers.

use std::fmt;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// 128 random bits. The page gets them in the fragment of its address, which browsers do not send to servers.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new random token.
    ///
    /// # Errors
    /// The errors of getrandom(2).
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0u8; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        Ok(Token(hex::encode(bytes)))
    }

    /// The token as 32 hex digits.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether the header `Authorization` has the token. The time of the comparison does not depend on the
    /// bytes that differ.
    pub(crate) fn admits(&self, authorization: &[u8]) -> bool {
        let Some(given) = authorization.strip_prefix(b"Bearer ") else { return false };
        let own = self.0.as_bytes();
        let difference = own.iter().zip(given).fold(0, |bits, (own, given)| bits | (own ^ given));
        given.len() == own.len() && std::hint::black_box(difference) == 0
    }
}

/// Logs do not show the token.
impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_admits() {
        let token = Token::random().unwrap();
        let named = |text: &str| token.admits(text.as_bytes());
        assert_eq!(token.text().len(), 32);
        assert!(named(&format!("Bearer {}", token.text())));
        for wrong in [
            String::new(),
            "Bearer ".into(),
            token.text().into(),
            format!("bearer {}", token.text()),
            format!("Bearer {}0", token.text()),
            format!("Bearer {}", &token.text()[1..]),
            format!("Bearer {}", Token::random().unwrap().text()),
        ] {
            assert!(!named(&wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }
}
