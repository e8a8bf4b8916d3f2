//! Object stores, as the command line and the environment name them.

use std::path::Path;
use std::time::Duration;

use ppt_delivery::{OutageWatch, Target, s3_client};

use crate::args::is_address;
use crate::error::AnswerError;
use crate::message;

/// A prefix in a bucket.
pub(super) struct StoreAddress {
    /// The address as typed.
    name: String,
    bucket: String,
    prefix: String,
}

impl StoreAddress {
    /// Parses `s3://BUCKET/PREFIX`. None if `output` is a path.
    pub(super) fn parse(output: &Path) -> Result<Option<StoreAddress>, AnswerError> {
        let name = output.to_string_lossy().into_owned();
        if !is_address(&name) {
            return Ok(None);
        }
        let Some(rest) = name.strip_prefix("s3://") else {
            let why =
                format!("{name}: ppt knows object stores that speak S3 alone: s3://BUCKET/PREFIX");
            return Err(AnswerError::Usage(why));
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_one = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        if bucket.is_empty() || !bucket.chars().all(is_one) {
            return Err(AnswerError::Usage(format!("{name}: name a bucket: s3://BUCKET/PREFIX")));
        }
        let (bucket, prefix) = (bucket.to_owned(), prefix.trim_matches('/').to_owned());
        Ok(Some(StoreAddress { name: name.trim_end_matches('/').to_owned(), bucket, prefix }))
    }

    /// Connects according to the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on).
    pub(super) fn target(self, outage: Duration) -> Result<Target, AnswerError> {
        let client = s3_client(&self.bucket);
        let client =
            client.map_err(|error| AnswerError::Usage(format!("{}: {error}", self.name)))?;
        let watch = StoreWatch { name: self.name.clone(), limit: outage };
        Ok(Target::objects(client, &self.prefix, self.name, Box::new(watch)))
    }
}

/// Reports when a store stops answering, and when it answers again.
struct StoreWatch {
    name: String,
    limit: Duration,
}

impl OutageWatch for StoreWatch {
    fn limit(&self) -> Duration {
        self.limit
    }

    fn began(&self, cause: &str) {
        let limit = humantime::format_duration(self.limit);
        let text = "the object store takes no requests, which are repeated for";
        message::warning("store-away", format_args!("{}: {text} {limit}: {cause}", self.name));
    }

    fn ended(&self, after: Duration) {
        let seconds = after.as_secs();
        let text = "the object store takes requests again, after";
        message::note(format_args!("{}: {text} {seconds} s", self.name));
    }

    fn is_stopped(&self) -> bool {
        ppt_signals::came()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_bucket_and_a_prefix() {
        let parse = |text: &str| {
            let parsed = StoreAddress::parse(Path::new(text)).map_err(|error| error.to_string());
            parsed.map(|address| address.map(|address| [address.bucket, address.prefix]))
        };
        let address = |bucket: &str, prefix: &str| Ok(Some([bucket.to_owned(), prefix.to_owned()]));
        assert_eq!(parse("s3://b/p/q/"), address("b", "p/q"));
        assert_eq!(parse("s3://b"), address("b", ""));
        assert_eq!(parse("s3:/b"), Ok(None));
        assert_eq!(parse("frames"), Ok(None));
        assert!(parse("s3:///p").unwrap_err().contains("name a bucket"));
        assert!(parse("s3://user@b/p").unwrap_err().contains("name a bucket"));
        assert!(parse("gs://b/p").unwrap_err().contains("speak S3 alone"));
    }
}
