//! Where files go: a folder, or a prefix of an object store.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;

use crate::error::DeliveryError;
use crate::folder::DeliveryFolder;
use crate::manifest::Manifest;
use crate::objects::DeliveryObjects;
use crate::outage::OutageWatch;

/// The name of the manifest. Readers of folders leave out what begins with `_`.
const MANIFEST: &str = "_ppt-manifest.json";

/// Where files go: a folder, or a prefix of an object store.
#[derive(Debug)]
pub struct Target {
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    Folder(DeliveryFolder),
    Objects(DeliveryObjects),
}

impl Target {
    /// Opens a folder, which is made if it is not there. Nobody else delivers into it while this lives.
    ///
    /// # Errors
    /// It cannot be made or written, or another process delivers into it.
    pub fn folder(path: &Path) -> Result<Target, DeliveryError> {
        Ok(Target { destination: Destination::Folder(DeliveryFolder::open(path)?) })
    }

    /// Objects whose names begin with `prefix/`. `name` is what messages call that. Another exporter that
    /// delivers there takes over, and this one is informed.
    ///
    /// # Errors
    /// The prefix cannot be one.
    pub fn objects(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        name: String,
        watch: Box<dyn OutageWatch>,
    ) -> Result<Target, DeliveryError> {
        let objects = DeliveryObjects::new(store, prefix, name, watch)?;
        Ok(Target { destination: Destination::Objects(objects) })
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        match &self.destination {
            Destination::Folder(folder) => folder.name(),
            Destination::Objects(objects) => objects.name(),
        }
    }

    /// The name of its manifest in messages.
    pub fn manifest_name(&self) -> String {
        format!("{}/{MANIFEST}", self.name().trim_end_matches('/'))
    }

    /// Whether several exporters can have it at once, so that each signs its manifests.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.destination, Destination::Objects(_))
    }

    /// Whether a second exporter is kept out, or noticed.
    pub fn is_guarded(&self) -> bool {
        match &self.destination {
            Destination::Folder(_) => true,
            Destination::Objects(objects) => objects.is_guarded(),
        }
    }

    /// Reads the manifest. None: there is neither one nor anything else.
    pub(crate) async fn read(&mut self) -> Result<Option<Manifest>, DeliveryError> {
        let name = self.manifest_name();
        let found = match &mut self.destination {
            Destination::Folder(folder) => folder.read(MANIFEST)?,
            Destination::Objects(objects) => objects.read(MANIFEST).await?,
        };
        if let Some(bytes) = found {
            let manifest = Manifest::from_json(&bytes);
            return manifest.map(Some).map_err(|why| DeliveryError::BadManifest { name, why });
        }
        let any = match &self.destination {
            Destination::Folder(folder) => folder.any()?,
            Destination::Objects(objects) => objects.any().await?,
        };
        match any {
            None => Ok(None),
            Some(file) => Err(DeliveryError::NoManifest { place: self.name(), file }),
        }
    }

    /// Writes the manifest, in one step.
    pub(crate) async fn write(&mut self, manifest: &Manifest) -> Result<(), DeliveryError> {
        let bytes = self.bytes(manifest)?;
        match &mut self.destination {
            Destination::Folder(folder) => folder.put(MANIFEST, &bytes),
            Destination::Objects(objects) => objects.replace(MANIFEST, bytes).await,
        }
    }

    /// Makes sure that a second exporter is kept out, or noticed; `manifest` is what was written last.
    pub(crate) async fn check(&mut self, manifest: &Manifest) -> Result<(), DeliveryError> {
        let bytes = self.bytes(manifest)?;
        match &mut self.destination {
            Destination::Folder(_) => Ok(()),
            Destination::Objects(objects) => objects.check(MANIFEST, &bytes).await,
        }
    }

    fn bytes(&self, manifest: &Manifest) -> Result<Vec<u8>, DeliveryError> {
        manifest.to_json().map_err(|error| self.unwritten(error))
    }

    /// A list of files that are in the manifest no more, if it has become long: its name, and its content.
    pub(crate) fn list_files(
        &self,
        manifest: &mut Manifest,
    ) -> Result<Option<(String, Vec<u8>)>, DeliveryError> {
        manifest.list_files().map_err(|error| self.unwritten(error))
    }

    fn unwritten(&self, error: serde_json::Error) -> DeliveryError {
        DeliveryError::Write { name: self.manifest_name(), cause: error.into() }
    }

    /// What is in a file; None: there is none.
    pub(crate) async fn content(&self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        match &self.destination {
            Destination::Folder(folder) => folder.read(name),
            Destination::Objects(objects) => objects.content(name).await,
        }
    }

    /// Removes a file, if it is there.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), DeliveryError> {
        match &self.destination {
            Destination::Folder(folder) => folder.remove(name),
            Destination::Objects(objects) => objects.remove(name).await,
        }
    }

    /// Puts a file, in one step; it replaces the one that has the name.
    pub(crate) async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        match &self.destination {
            Destination::Folder(folder) => folder.put(name, &bytes),
            Destination::Objects(objects) => objects.put(name, bytes).await,
        }
    }
}
