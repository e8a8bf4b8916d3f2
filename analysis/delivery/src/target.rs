//! The target of a delivery: a folder, or a prefix of an object store.

use std::path::Path;
use std::sync::Arc;

use crate::error::DeliveryError;
use crate::folder::DeliveryFolder;
use crate::manifest::{ListContent, Manifest};
use crate::object_client::ObjectClient;
use crate::objects::DeliveryObjects;
use crate::outage::OutageWatch;

/// The name of the manifest. Readers of folders ignore names that begin with `_`.
const MANIFEST: &str = "_ppt-manifest.json";

/// A folder, or a prefix of an object store.
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
    /// Locks a folder until the target is dropped. Creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created or written, or another process has locked it.
    pub fn folder(path: &Path) -> Result<Target, DeliveryError> {
        Ok(Target { destination: Destination::Folder(DeliveryFolder::open(path)?) })
    }

    /// Objects whose names begin with `prefix/`. Messages show `name`. If another exporter delivers there,
    /// the next write of this one fails.
    pub fn objects(
        client: Arc<dyn ObjectClient>,
        prefix: &str,
        name: String,
        watch: Box<dyn OutageWatch>,
    ) -> Target {
        let objects = DeliveryObjects::new(client, prefix, name, watch);
        Target { destination: Destination::Objects(objects) }
    }

    /// The name of the target in messages.
    pub fn name(&self) -> String {
        match &self.destination {
            Destination::Folder(folder) => folder.name(),
            Destination::Objects(objects) => objects.name(),
        }
    }

    /// The name of the manifest in messages.
    pub fn manifest_name(&self) -> String {
        format!("{}/{MANIFEST}", self.name().trim_end_matches('/'))
    }

    /// Whether several exporters can open the target at once. Each then signs its manifests.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.destination, Destination::Objects(_))
    }

    /// Whether the target excludes or detects a second exporter.
    pub fn is_guarded(&self) -> bool {
        match &self.destination {
            Destination::Folder(_) => true,
            Destination::Objects(objects) => objects.is_guarded(),
        }
    }

    /// Reads the manifest. None if the target is empty.
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
        let any_file = match &self.destination {
            Destination::Folder(folder) => folder.any_file()?,
            Destination::Objects(objects) => objects.any_object().await?,
        };
        match any_file {
            None => Ok(None),
            Some(file) => Err(DeliveryError::NoManifest { place: self.name(), file }),
        }
    }

    /// Replaces the manifest in one step.
    pub(crate) async fn write(&mut self, manifest: &Manifest) -> Result<(), DeliveryError> {
        let bytes = self.bytes(manifest)?;
        match &mut self.destination {
            Destination::Folder(folder) => folder.put(MANIFEST, &bytes),
            Destination::Objects(objects) => objects.replace(MANIFEST, bytes).await,
        }
    }

    /// Checks that the target excludes or detects a second exporter. `manifest` was written last.
    pub(crate) async fn check(&mut self, manifest: &Manifest) -> Result<(), DeliveryError> {
        let bytes = self.bytes(manifest)?;
        match &mut self.destination {
            Destination::Folder(_) => Ok(()),
            Destination::Objects(objects) => objects.check(MANIFEST, bytes).await,
        }
    }

    fn bytes(&self, manifest: &Manifest) -> Result<Vec<u8>, DeliveryError> {
        manifest.to_json().map_err(|error| self.write_error(error))
    }

    /// Moves files of a long manifest into a list. See [`Manifest::list_files`].
    pub(crate) fn list_files(
        &self,
        manifest: &mut Manifest,
    ) -> Result<Option<ListContent>, DeliveryError> {
        manifest.list_files().map_err(|error| self.write_error(error))
    }

    fn write_error(&self, error: serde_json::Error) -> DeliveryError {
        DeliveryError::Write { name: self.manifest_name(), cause: error.into() }
    }

    /// The content of a file. None if it does not exist.
    pub(crate) async fn content(&self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        match &self.destination {
            Destination::Folder(folder) => folder.read(name),
            Destination::Objects(objects) => objects.content(name).await,
        }
    }

    /// Removes a file if it exists.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), DeliveryError> {
        match &self.destination {
            Destination::Folder(folder) => folder.remove(name),
            Destination::Objects(objects) => objects.remove(name).await,
        }
    }

    /// Puts a file in one step. It replaces a file of the same name.
    pub(crate) async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        match &self.destination {
            Destination::Folder(folder) => folder.put(name, &bytes),
            Destination::Objects(objects) => objects.put(name, bytes).await,
        }
    }
}
