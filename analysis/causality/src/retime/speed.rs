//! Speeds of activities: `job.handle=2x`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The speed of an activity.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// The name of the activity, or the last part of it.
    pub activity: String,
    /// The factor by which it is faster: 2 is twice as fast.
    pub factor: f64,
}

/// The speeds of different activities.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Speeds(Vec<Speed>);

/// A text that is not a speed, or two speeds of one activity.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SpeedError {
    /// The text has no `=`.
    #[error("`{text}` does not say how fast: `handle=2x` makes `handle` twice as fast")]
    NoEquals {
        /// The text.
        text: String,
    },
    /// The text has no name before the `=`.
    #[error("`{text}` does not name an interval: `handle=2x` makes `handle` twice as fast")]
    NoName {
        /// The text.
        text: String,
    },
    /// The text after the `=` is not a number.
    #[error("`{factor}` is not a speed: `2x` is twice as fast")]
    NoNumber {
        /// The text after the `=`.
        factor: String,
    },
    /// The number is not above 0, or not finite.
    #[error(
        "a speed is above 0 and finite, not `{factor}`: `2x` is twice as fast, `0.5x` half as fast"
    )]
    Range {
        /// The text after the `=`.
        factor: String,
    },
    /// One activity has two speeds.
    #[error("`{activity}` has two speeds")]
    Twice {
        /// The name of the activity.
        activity: String,
    },
}

/// A name that does not identify one activity of the run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ActivityError {
    /// No activity has the name.
    #[error("there is no interval `{name}`; there are: {}", .names.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names of the run.
        names: Vec<String>,
    },
    /// Several activities have the name.
    #[error("`{name}` may be {}", .names.join(" or "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The names of these activities.
        names: Vec<String>,
    },
    /// Two names identify the same activity.
    #[error(transparent)]
    Twice(#[from] SpeedError),
}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Speed, SpeedError> {
        let (name, factor) =
            text.rsplit_once('=').ok_or_else(|| SpeedError::NoEquals { text: text.to_owned() })?;
        let (name, factor) = (name.trim(), factor.trim());
        if name.is_empty() {
            return Err(SpeedError::NoName { text: text.to_owned() });
        }
        let number: f64 = factor
            .strip_suffix('x')
            .unwrap_or(factor)
            .parse()
            .map_err(|_| SpeedError::NoNumber { factor: factor.to_owned() })?;
        if !(number > 0.0 && number.is_finite()) {
            return Err(SpeedError::Range { factor: factor.to_owned() });
        }
        Ok(Speed { activity: name.to_owned(), factor: number })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}x", self.activity, self.factor)
    }
}

impl Speeds {
    /// # Errors
    /// An activity has two speeds.
    pub fn new(speeds: Vec<Speed>) -> Result<Speeds, SpeedError> {
        for (at, speed) in speeds.iter().enumerate() {
            if speeds[..at].iter().any(|other| other.activity == speed.activity) {
                return Err(SpeedError::Twice { activity: speed.activity.clone() });
            }
        }
        Ok(Speeds(speeds))
    }

    /// The speeds, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Speed> {
        self.0.iter()
    }

    /// Adds a speed of another activity.
    pub(super) fn with(mut self, speed: Speed) -> Speeds {
        self.0.push(speed);
        self
    }

    /// The same activities, all with the speed `factor`.
    #[must_use]
    pub fn all(&self, factor: f64) -> Speeds {
        Speeds(self.0.iter().map(|speed| Speed { factor, ..speed.clone() }).collect())
    }

    /// Completes the names by those of `activities`. A name without a service (`served.request`) stands for the
    /// activities of all services (`served.request@80`).
    ///
    /// # Errors
    /// A name fits no activity or several, or two names fit the same.
    pub fn resolve(&self, activities: &[&str]) -> Result<Speeds, ActivityError> {
        let mut resolved = Vec::new();
        for Speed { activity, factor } in &self.0 {
            let is_of_service =
                |text: &&&str| text.split_once('@').is_some_and(|(name, _)| name == activity);
            let mut names: Vec<&str> = activities.iter().filter(is_of_service).copied().collect();
            if names.is_empty() {
                names.push(resolve_name(activity, activities)?);
            }
            let speed = |name: &str| Speed { activity: name.to_owned(), factor: *factor };
            resolved.extend(names.into_iter().map(speed));
        }
        Ok(Speeds::new(resolved)?)
    }
}

/// The only one of `names` that is `name`, or ends with `.name`.
pub(super) fn resolve_name<'a>(name: &str, names: &[&'a str]) -> Result<&'a str, ActivityError> {
    if let Some(found) = names.iter().find(|text| **text == name) {
        return Ok(found);
    }
    let ends = |text: &str| text.strip_suffix(name).is_some_and(|text| text.ends_with('.'));
    let matching: Vec<_> = names.iter().copied().filter(|text| ends(text)).collect();
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    match matching[..] {
        [found] => Ok(found),
        [] => Err(ActivityError::Unknown { name: name.to_owned(), names: owned(names) }),
        _ => Err(ActivityError::Ambiguous { name: name.to_owned(), names: owned(&matching) }),
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
        let is = |activity: &str, factor| Ok(Speed { activity: activity.to_owned(), factor });
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
        let activities = ["job.handle", "job.parse", "mail.parse"];
        let resolved = both("handle=2x", "mail.parse=3x").unwrap().resolve(&activities).unwrap();
        let names: Vec<_> = resolved.iter().map(|speed| speed.activity.as_str()).collect();
        assert_eq!(names, ["job.handle", "mail.parse"]);
        let resolve = |one, other| both(one, other).unwrap().resolve(&activities);
        assert!(matches!(resolve("handle=2x", "job.handle=3x"), Err(ActivityError::Twice(_))));
        assert!(matches!(resolve("parse=2x", "handle=3x"), Err(ActivityError::Ambiguous { .. })));
        assert!(matches!(resolve("andle=2x", "parse=3x"), Err(ActivityError::Unknown { .. })));
        let activities = ["served.request@80", "served.request@5432", "called.call"];
        let all = Speeds::new(vec![speed("served.request=2x").unwrap()]).unwrap();
        let resolved = all.resolve(&activities).unwrap();
        let names: Vec<_> = resolved.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["served.request@80=2x", "served.request@5432=2x"]);
        let one = Speeds::new(vec![speed("request@80=3x").unwrap()]).unwrap().resolve(&activities);
        assert_eq!(one.unwrap().iter().next().unwrap().activity, "served.request@80");
    }
}
