//! A client with TLS.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{
    ClientConfigKey, Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    RetryConfig, UpdateVersion,
};

use crate::object_client::{ClientError, ObjectClient, PutCondition, StoredObject};

/// Timeout of one request, unless the environment sets another: a large file over a slow line needs
/// more than the client's default of 30 s.
const REQUEST: &str = "5 minutes";

/// See [`super::s3_client`].
pub(super) fn client(bucket: &str) -> Result<Arc<dyn ObjectClient>, ClientError> {
    // Fails if the process has a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let timeout = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
    if builder.get_config_value(&timeout).is_none() {
        builder = builder.with_config(timeout, REQUEST);
    }
    // An explicit http:// address is intended.
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    // The delivery repeats requests itself, and reports it.
    let once = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    let store = builder.with_retry(once).build();
    Ok(Arc::new(S3Client(store.map_err(|error| ClientError::Refused(error.to_string()))?)))
}

struct S3Client(AmazonS3);

#[async_trait]
impl ObjectClient for S3Client {
    async fn get(&self, path: &str) -> Result<StoredObject, ClientError> {
        let found = self.0.get(&parse(path)?).await.map_err(client_error)?;
        let version = found.meta.e_tag.clone();
        Ok(StoredObject { bytes: found.bytes().await.map_err(client_error)?, version })
    }

    async fn put(
        &self,
        path: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<Option<String>, ClientError> {
        let mode = match condition {
            PutCondition::Always => PutMode::Overwrite,
            PutCondition::Absent => PutMode::Create,
            PutCondition::Version(version) => {
                PutMode::Update(UpdateVersion { e_tag: Some(version), version: None })
            }
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.0.put_opts(&parse(path)?, PutPayload::from(bytes), options).await;
        Ok(put.map_err(client_error)?.e_tag)
    }

    async fn remove(&self, path: &str) -> Result<(), ClientError> {
        self.0.delete(&parse(path)?).await.map_err(client_error)
    }

    async fn any_object(&self, prefix: &str) -> Result<Option<String>, ClientError> {
        let prefix = Some(parse(prefix)?).filter(|prefix| !prefix.as_ref().is_empty());
        let found = self.0.list(prefix.as_ref()).next().await.transpose();
        Ok(found.map_err(client_error)?.map(|object| object.location.to_string()))
    }
}

fn parse(path: &str) -> Result<Path, ClientError> {
    Path::parse(path).map_err(|error| ClientError::Refused(error.to_string()))
}

/// What an error of the client means. Some causes are in its text alone.
fn client_error(error: Error) -> ClientError {
    let (text, cause) = (error.to_string(), describe(&error));
    let has_code = |code: &str| text.contains(&format!("status code: {code}"));
    // Of the codes 4xx, only these are temporary.
    let is_busy = has_code("408") || has_code("429") || text.contains("<Code>ExpiredToken</Code>");
    let is_elsewhere = has_code("3") || text.contains("incorrectly configured region");
    match error {
        Error::NotFound { .. } if !cause.contains("NoSuchBucket") => ClientError::NotFound(cause),
        Error::Precondition { .. } | Error::AlreadyExists { .. } => {
            ClientError::ConditionFailed(cause)
        }
        Error::NotImplemented { .. } => ClientError::NoConditions(cause),
        _ if has_code("501") => ClientError::Unsupported(cause),
        Error::Generic { .. } if !is_elsewhere && (is_busy || !has_code("4")) => {
            ClientError::Away(cause)
        }
        _ => ClientError::Refused(cause),
    }
}

/// The text of an error and its causes, on one line of limited length.
fn describe(error: &Error) -> String {
    const MAX_CHARACTERS: usize = 400;
    let mut texts = vec![error.to_string()];
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        let text = error.to_string();
        // The texts of many errors include those of their causes.
        if texts.iter().all(|previous| !previous.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    let text = texts.join(": ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
