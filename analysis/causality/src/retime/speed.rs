//! How much faster what is: `job.handle=2x`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// An activity, and how many times as fast it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// Its name, or the last part of it.
    pub activity: String,
    /// 2 is twice as fast.
    pub times: f64,
}

/// Several, each of another activity.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Speeds(Vec<Speed>);

/// A speed that cannot be read.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SpeedError {
    /// There is no `=`.
    #[error("`{text}` says not how fast: `handle=2x` makes `handle` twice as fast")]
    NoEquals {
        /// What was written.
        text: String,
    },
    /// There is nothing before the `=`.
    #[error("`{text}` names no interval: `handle=2x` makes `handle` twice as fast")]
    NoName {
        /// What was written.
        text: String,
    },
    /// What follows the `=` is no number.
    #[error("`{times}` is no speed: `2x` is twice as fast")]
    NoNumber {
        /// What was written.
        times: String,
    },
    /// 0, less, or beyond all numbers.
    #[error(
        "a speed is above 0 and finite, not `{times}`: `2x` is twice as fast, `0.5x` half as fast"
    )]
    Range {
        /// What was written.
        times: String,
    },
    /// One activity has two.
    #[error("`{activity}` has two speeds")]
    Twice {
        /// Its name.
        activity: String,
    },
}

/// A name that means no activity of the run, or more than one.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum NoActivity {
    /// None.
    #[error("there is no interval `{name}`; there are: {}", .there.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those of the run.
        there: Vec<String>,
    },
    /// More than one.
    #[error("`{name}` may be {}", .which.join(" or "))]
    Several {
        /// The name.
        name: String,
        /// What it may mean.
        which: Vec<String>,
    },
    /// Two names mean one activity.
    #[error(transparent)]
    Twice(#[from] SpeedError),
}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Speed, SpeedError> {
        let (name, times) =
            text.rsplit_once('=').ok_or_else(|| SpeedError::NoEquals { text: text.to_owned() })?;
        let (name, times) = (name.trim(), times.trim());
        if name.is_empty() {
            return Err(SpeedError::NoName { text: text.to_owned() });
        }
        let number: f64 = times
            .strip_suffix('x')
            .unwrap_or(times)
            .parse()
            .map_err(|_| SpeedError::NoNumber { times: times.to_owned() })?;
        if !(number > 0.0 && number.is_finite()) {
            return Err(SpeedError::Range { times: times.to_owned() });
        }
        Ok(Speed { activity: name.to_owned(), times: number })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}x", self.activity, self.times)
    }
}

impl Speeds {
    /// These, if no activity has two.
    ///
    /// # Errors
    /// An activity is named twice.
    pub fn new(speeds: Vec<Speed>) -> Result<Speeds, SpeedError> {
        for (at, speed) in speeds.iter().enumerate() {
            if speeds[..at].iter().any(|it| it.activity == speed.activity) {
                return Err(SpeedError::Twice { activity: speed.activity.clone() });
            }
        }
        Ok(Speeds(speeds))
    }

    /// Each.
    pub fn iter(&self) -> impl Iterator<Item = &Speed> {
        self.0.iter()
    }

    /// One more.
    pub(super) fn with(mut self, speed: Speed) -> Speeds {
        self.0.push(speed);
        self
    }

    /// All of them `times` as fast.
    #[must_use]
    pub fn all(&self, times: f64) -> Speeds {
        Speeds(self.0.iter().map(|speed| Speed { times, ..speed.clone() }).collect())
    }

    /// With whole names, of those `there`. The name of what several services do (`served.request`) means
    /// each of them (`served.request@80`).
    ///
    /// # Errors
    /// A name fits no activity, or several.
    pub fn known(&self, there: &[&str]) -> Result<Speeds, NoActivity> {
        let mut all = Vec::new();
        for Speed { activity, times } in &self.0 {
            let is_one =
                |text: &&&str| text.split_once('@').is_some_and(|(name, _)| name == activity);
            let mut names: Vec<&str> = there.iter().filter(is_one).copied().collect();
            if names.is_empty() {
                names.push(named(activity, there)?);
            }
            let speed = |name: &str| Speed { activity: name.to_owned(), times: *times };
            all.extend(names.into_iter().map(speed));
        }
        Ok(Speeds::new(all)?)
    }
}

/// The one name of `there` that is `name`, or ends so after a dot.
pub(super) fn named<'a>(name: &str, there: &[&'a str]) -> Result<&'a str, NoActivity> {
    if let Some(word) = there.iter().find(|text| **text == name) {
        return Ok(word);
    }
    let ends = |text: &str| text.strip_suffix(name).is_some_and(|text| text.ends_with('.'));
    let which: Vec<_> = there.iter().copied().filter(|text| ends(text)).collect();
    let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    match which[..] {
        [word] => Ok(word),
        [] => Err(NoActivity::Unknown { name: name.to_owned(), there: all(there) }),
        _ => Err(NoActivity::Several { name: name.to_owned(), which: all(&which) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(text: &str) -> Result<Speed, SpeedError> {
        text.parse()
    }

    #[test]
    fn how_much_faster() {
        let is = |activity: &str, times| Ok(Speed { activity: activity.to_owned(), times });
        assert_eq!(speed("handle=2x"), is("handle", 2.0));
        assert_eq!(speed(" job.handle = 1.5x "), is("job.handle", 1.5));
        assert_eq!(speed("handle=0.5"), is("handle", 0.5));
        assert_eq!(speed("handle=2x").unwrap().to_string(), "handle=2x");
        for text in ["handle=0x", "handle=-1x", "handle=NaNx", "handle=infx", "handle=1e999x"] {
            assert!(matches!(speed(text), Err(SpeedError::Range { .. })), "{text}");
        }
        for text in ["handle=", "handle=x", "handle=fast", "handle=2xx", "handle=2 x x"] {
            assert!(matches!(speed(text), Err(SpeedError::NoNumber { .. })), "{text}");
        }
        assert!(matches!(speed("handle"), Err(SpeedError::NoEquals { .. })));
        assert!(matches!(speed(" =2x"), Err(SpeedError::NoName { .. })));
    }

    #[test]
    fn each_activity_once() {
        let both =
            |one: &str, other: &str| Speeds::new(vec![speed(one).unwrap(), speed(other).unwrap()]);
        let twice = SpeedError::Twice { activity: "handle".to_owned() };
        assert_eq!(both("handle=2x", "handle=3x"), Err(twice));
        let there = ["job.handle", "job.parse", "mail.parse"];
        let known = both("handle=2x", "mail.parse=3x").unwrap().known(&there).unwrap();
        let names: Vec<_> = known.iter().map(|speed| speed.activity.as_str()).collect();
        assert_eq!(names, ["job.handle", "mail.parse"]);
        let known = |one, other| both(one, other).unwrap().known(&there);
        assert!(matches!(known("handle=2x", "job.handle=3x"), Err(NoActivity::Twice(_))));
        assert!(matches!(known("parse=2x", "handle=3x"), Err(NoActivity::Several { .. })));
        assert!(matches!(known("andle=2x", "parse=3x"), Err(NoActivity::Unknown { .. })));
        let there = ["served.request@80", "served.request@5432", "called.call"];
        let all = Speeds::new(vec![speed("served.request=2x").unwrap()]).unwrap();
        let known = all.known(&there).unwrap();
        let names: Vec<_> = known.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["served.request@80=2x", "served.request@5432=2x"]);
        let one = Speeds::new(vec![speed("request@80=3x").unwrap()]).unwrap().known(&there);
        assert_eq!(one.unwrap().iter().next().unwrap().activity, "served.request@80");
    }
}
