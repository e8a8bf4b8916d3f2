//! Delivery into an object store, below a prefix.

use std::sync::Arc;

use futures::StreamExt;
use object_store::path::Path;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use crate::error::DeliveryError;
use crate::outage::{OutageWatch, describe, is_unsupported, persist};

/// An ETag that no object has.
const NO_ETAG: &str = "\"00000000000000000000000000000000\"";
/// The most attempts to replace the manifest while the store reports concurrent writes.
const MAX_CONFLICTS: usize = 20;

/// The manifest that the next one may replace.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    /// No manifest may exist.
    Nothing,
    /// The manifest must have this ETag.
    Version(Option<String>),
    /// The store has no conditions, so any manifest is replaced.
    Anything,
}

/// An object that was read.
struct StoredObject {
    bytes: Vec<u8>,
    /// The ETag of the object, if the store has ETags.
    version: Option<String>,
}

/// Objects below a prefix. The manifest is replaced only if no other exporter has replaced it.
pub(crate) struct DeliveryObjects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    name: String,
    watch: Box<dyn OutageWatch>,
    expected: Expected,
}

impl std::fmt::Debug for DeliveryObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeliveryObjects").field("name", &self.name).finish_non_exhaustive()
    }
}

impl DeliveryObjects {
    /// Objects whose names begin with `prefix`. Messages show `name`.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        name: String,
        watch: Box<dyn OutageWatch>,
    ) -> Result<DeliveryObjects, DeliveryError> {
        let refused = |error: object_store::path::Error| DeliveryError::StoreRefused {
            name: name.clone(),
            cause: error.to_string(),
        };
        let prefix = Path::parse(prefix).map_err(refused)?;
        Ok(DeliveryObjects { store, prefix, name, watch, expected: Expected::Nothing })
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Whether a second exporter is detected.
    pub fn is_guarded(&self) -> bool {
        self.expected != Expected::Anything
    }

    /// The path of an object in the store, and its name in messages.
    fn path(&self, name: &str) -> Result<(Path, String), DeliveryError> {
        let full = format!("{}/{name}", self.name.trim_end_matches('/'));
        let path = match self.prefix.as_ref() {
            "" => Path::parse(name),
            prefix => Path::parse(format!("{prefix}/{name}")),
        };
        let path = path.map_err(|error| refused(&full, error.to_string()))?;
        Ok((path, full))
    }

    /// Reads an object. None if it does not exist.
    async fn get(&self, name: &str) -> Result<Option<StoredObject>, DeliveryError> {
        let (path, full) = self.path(name)?;
        let request = || async {
            let found = self.store.get(&path).await?;
            let version = found.meta.e_tag.clone();
            Ok(StoredObject { bytes: found.bytes().await?.to_vec(), version })
        };
        match persist(&*self.watch, &full, request).await? {
            Ok(found) => Ok(Some(found)),
            // The bucket exists, but not the object.
            Err(Error::NotFound { source, .. }) if !source.to_string().contains("NoSuchBucket") => {
                Ok(None)
            }
            Err(error) => Err(refused(&full, describe(&error))),
        }
    }

    /// The content of an object. None if it does not exist.
    pub async fn content(&self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        Ok(self.get(name).await?.map(|object| object.bytes))
    }

    /// Removes an object if it exists.
    pub async fn remove(&self, name: &str) -> Result<(), DeliveryError> {
        let (path, full) = self.path(name)?;
        let request = || self.store.delete(&path);
        match persist(&*self.watch, &full, request).await? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(refused(&full, describe(&error))),
        }
    }

    /// Reads the object that [`DeliveryObjects::replace`] writes. From then on, `replace` replaces only the
    /// version that was read.
    pub async fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        let found = self.get(name).await?;
        if self.is_guarded() {
            self.expected = match &found {
                Some(object) => Expected::Version(object.version.clone()),
                None => Expected::Nothing,
            };
        }
        Ok(found.map(|object| object.bytes))
    }

    /// The name of some object below the prefix. None if there is none.
    pub async fn any_object(&self) -> Result<Option<String>, DeliveryError> {
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let request = || async { self.store.list(prefix).next().await.transpose() };
        match persist(&*self.watch, &self.name, request).await? {
            Ok(found) => Ok(found.map(|object| object.location.to_string())),
            Err(error) => Err(refused(&self.name, describe(&error))),
        }
    }

    /// Puts an object in one step. It replaces an object of the same name.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        let (path, full) = self.path(name)?;
        let payload = PutPayload::from(bytes);
        let request = || self.store.put(&path, payload.clone());
        let put = persist(&*self.watch, &full, request).await?;
        put.map(drop).map_err(|error| refused(&full, describe(&error)))
    }

    /// Replaces the version of an object that was read or written last.
    ///
    /// # Errors
    /// Another exporter has replaced it, or the store refuses.
    pub async fn replace(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        let (path, full) = self.path(name)?;
        let payload = PutPayload::from(bytes.clone());
        for _ in 0..MAX_CONFLICTS {
            let mode = match &self.expected {
                Expected::Nothing => PutMode::Create,
                Expected::Version(version) => PutMode::Update(UpdateVersion {
                    e_tag: Some(version.clone().unwrap_or_else(|| NO_ETAG.to_owned())),
                    version: None,
                }),
                Expected::Anything => PutMode::Overwrite,
            };
            let request = || {
                let options = PutOptions { mode: mode.clone(), ..PutOptions::default() };
                self.store.put_opts(&path, payload.clone(), options)
            };
            let error = match persist(&*self.watch, &full, request).await? {
                Ok(put) if self.is_guarded() => {
                    self.expected = Expected::Version(put.e_tag);
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                // By its settings, the client uses no conditions for this store.
                Err(Error::NotImplemented { .. }) => {
                    self.expected = Expected::Anything;
                    continue;
                }
                Err(error) if is_unsupported(&error) => {
                    return Err(DeliveryError::NoConditionalPut { name: self.name() });
                }
                Err(error @ (Error::Precondition { .. } | Error::AlreadyExists { .. })) => error,
                Err(error) => return Err(refused(&full, describe(&error))),
            };
            // If the store took the object and its answer got lost, the bytes are equal.
            match self.get(name).await? {
                Some(found) if found.bytes == bytes => {
                    self.expected = Expected::Version(found.version);
                    return Ok(());
                }
                Some(found) if self.expected == Expected::Version(found.version.clone()) => {}
                None if self.expected == Expected::Nothing => {}
                None => return Err(refused(&full, describe(&error))),
                Some(_) => return Err(DeliveryError::OtherExporter { name: self.name() }),
            }
        }
        Err(DeliveryError::OtherExporter { name: self.name() })
    }

    /// Checks that the store applies conditions. Otherwise two exporters could write at once.
    pub async fn check(&mut self, name: &str, bytes: &[u8]) -> Result<(), DeliveryError> {
        if !self.is_guarded() {
            return Ok(());
        }
        let (path, full) = self.path(name)?;
        let version = UpdateVersion { e_tag: Some(NO_ETAG.to_owned()), version: None };
        let payload = PutPayload::from(bytes.to_vec());
        let request = || {
            let mode = PutMode::Update(version.clone());
            let options = PutOptions { mode, ..PutOptions::default() };
            self.store.put_opts(&path, payload.clone(), options)
        };
        match persist(&*self.watch, &full, request).await? {
            Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => Ok(()),
            Err(error) if !is_unsupported(&error) => Err(refused(&full, describe(&error))),
            _ => Err(DeliveryError::NoConditionalPut { name: self.name() }),
        }
    }
}

fn refused(name: &str, cause: String) -> DeliveryError {
    DeliveryError::StoreRefused { name: name.to_owned(), cause }
}
