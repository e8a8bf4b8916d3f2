//! What a delivery asks of an object store.

use async_trait::async_trait;
use bytes::Bytes;

/// A client of one bucket. Paths have no `/` at their ends.
#[async_trait]
pub trait ObjectClient: Send + Sync {
    /// Reads an object.
    async fn get(&self, path: &str) -> Result<StoredObject, ClientError>;
    /// Puts an object in one step, if the condition holds. Returns its ETag, if the store has ETags.
    async fn put(
        &self,
        path: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<Option<String>, ClientError>;
    /// Removes an object.
    async fn remove(&self, path: &str) -> Result<(), ClientError>;
    /// The path of some object below a prefix; an empty prefix is the bucket. None if there is none.
    async fn any_object(&self, prefix: &str) -> Result<Option<String>, ClientError>;
}

/// An object that was read.
#[derive(Debug)]
pub struct StoredObject {
    /// Its content.
    pub bytes: Bytes,
    /// Its ETag, if the store has ETags.
    pub version: Option<String>,
}

/// The condition for which a store takes an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutCondition {
    /// None. An object of the same path is replaced.
    Always,
    /// The store has no object of this path.
    Absent,
    /// The object of this path has this ETag.
    Version(String),
}

/// The cause for which a request failed, with the text of the client's error on one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The build has no client.
    #[error(
        "this build of ppt has no client of object stores: build it with --features s3, or install a package"
    )]
    NoClient,
    /// The bucket has no such object.
    #[error("{0}")]
    NotFound(String),
    /// The condition of a put does not hold.
    #[error("{0}")]
    ConditionFailed(String),
    /// By its settings, the client sends no conditions.
    #[error("{0}")]
    NoConditions(String),
    /// The store does not implement the request.
    #[error("{0}")]
    Unsupported(String),
    /// The store does not answer, or is busy. The request may succeed later.
    #[error("{0}")]
    Away(String),
    /// The store refuses the request, and will do so again.
    #[error("{0}")]
    Refused(String),
}
