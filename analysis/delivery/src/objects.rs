//! Objects of a store that are delivered below a prefix.

use std::sync::Arc;

use futures::StreamExt;
use object_store::path::Path;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use crate::error::DeliveryError;
use crate::outage::{OutageWatch, is_unknown, persist, told};

/// An ETag that no object has.
const NO_ETAG: &str = "\"00000000000000000000000000000000\"";
/// How often the manifest is looked at again because the store says that somebody else is writing it.
const CONFLICTS: usize = 20;

/// What the manifest must be for the next one to replace it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    /// There must be none.
    Nothing,
    /// It must be of this version.
    Version(Option<String>),
    /// The store cannot say: it replaces what is there.
    Anything,
}

/// Objects below a prefix. The manifest is replaced only if no other exporter has replaced it
/// since.
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
    /// Objects whose names begin with `prefix`; `name` is what messages call that.
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

    /// Whether a second exporter is noticed.
    pub fn is_guarded(&self) -> bool {
        self.expected != Expected::Anything
    }

    fn path(&self, name: &str) -> Result<(Path, String), DeliveryError> {
        let full = format!("{}/{name}", self.name.trim_end_matches('/'));
        let path = match self.prefix.as_ref() {
            "" => Path::parse(name),
            prefix => Path::parse(format!("{prefix}/{name}")),
        };
        let path = path.map_err(|error| refused(&full, error.to_string()))?;
        Ok((path, full))
    }

    /// What is in the object, and its version; None: there is none.
    async fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Option<String>)>, DeliveryError> {
        let (path, full) = self.path(name)?;
        let request = || async {
            let found = self.store.get(&path).await?;
            let version = found.meta.e_tag.clone();
            Ok((found.bytes().await?.to_vec(), version))
        };
        match persist(&*self.watch, &full, request).await? {
            Ok(found) => Ok(Some(found)),
            // No object, as opposed to no bucket.
            Err(Error::NotFound { source, .. }) if !source.to_string().contains("NoSuchBucket") => {
                Ok(None)
            }
            Err(error) => Err(refused(&full, told(&error))),
        }
    }

    /// What is in an object; None: there is none.
    pub async fn content(&self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        Ok(self.get(name).await?.map(|(bytes, _)| bytes))
    }

    /// Removes an object, if it is there.
    pub async fn remove(&self, name: &str) -> Result<(), DeliveryError> {
        let (path, full) = self.path(name)?;
        let request = || self.store.delete(&path);
        match persist(&*self.watch, &full, request).await? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(refused(&full, told(&error))),
        }
    }

    /// Reads the object that is written by [`DeliveryObjects::replace`], which from then on replaces what
    /// was read and nothing else.
    pub async fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        let found = self.get(name).await?;
        if self.is_guarded() {
            self.expected = match &found {
                Some((_, version)) => Expected::Version(version.clone()),
                None => Expected::Nothing,
            };
        }
        Ok(found.map(|(bytes, _)| bytes))
    }

    /// An object, if there is one.
    pub async fn any(&self) -> Result<Option<String>, DeliveryError> {
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let request = || async { self.store.list(prefix).next().await.transpose() };
        match persist(&*self.watch, &self.name, request).await? {
            Ok(found) => Ok(found.map(|object| object.location.to_string())),
            Err(error) => Err(refused(&self.name, told(&error))),
        }
    }

    /// Puts an object. It appears as a whole, and replaces the one that has the name.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        let (path, full) = self.path(name)?;
        let payload = PutPayload::from(bytes);
        let request = || self.store.put(&path, payload.clone());
        let put = persist(&*self.watch, &full, request).await?;
        put.map(drop).map_err(|error| refused(&full, told(&error)))
    }

    /// Replaces the object that was read or replaced last, if no other exporter did so since.
    pub async fn replace(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        let (path, full) = self.path(name)?;
        let payload = PutPayload::from(bytes.clone());
        for _ in 0..CONFLICTS {
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
                // Whoever set up the store says that it has no conditions.
                Err(Error::NotImplemented { .. }) => {
                    self.expected = Expected::Anything;
                    continue;
                }
                Err(error) if is_unknown(&error) => {
                    return Err(DeliveryError::NoConditionalPut { name: self.name() });
                }
                Err(error @ (Error::Precondition { .. } | Error::AlreadyExists { .. })) => error,
                Err(error) => return Err(refused(&full, told(&error))),
            };
            // It may be this one: the store took it, and its answer got lost.
            match self.get(name).await? {
                Some((there, version)) if there == bytes => {
                    self.expected = Expected::Version(version);
                    return Ok(());
                }
                Some((_, version)) if self.expected == Expected::Version(version.clone()) => {}
                None if self.expected == Expected::Nothing => {}
                None => return Err(refused(&full, told(&error))),
                Some(_) => return Err(DeliveryError::OtherExporter { name: self.name() }),
            }
        }
        Err(DeliveryError::OtherExporter { name: self.name() })
    }

    /// Makes sure that the store heeds conditions: one that ignores them would let two exporters write.
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
            Err(error) if !is_unknown(&error) => Err(refused(&full, told(&error))),
            _ => Err(DeliveryError::NoConditionalPut { name: self.name() }),
        }
    }
}

fn refused(name: &str, cause: String) -> DeliveryError {
    DeliveryError::StoreRefused { name: name.to_owned(), cause }
}
