//! Where files go: a folder.

use std::path::Path;

use crate::error::DeliveryError;
use crate::folder::DeliveryFolder;
use crate::manifest::Manifest;

/// The name of the manifest. Readers of folders leave out what begins with `_`.
const MANIFEST: &str = "_ppt-manifest.json";

/// Where files go: a folder.
#[derive(Debug)]
pub struct Target {
    folder: DeliveryFolder,
}

impl Target {
    /// Opens a folder, which is made if it is not there. Nobody else delivers into it while this lives.
    ///
    /// # Errors
    /// It cannot be made or written, or another process delivers into it.
    pub fn folder(path: &Path) -> Result<Target, DeliveryError> {
        Ok(Target { folder: DeliveryFolder::open(path)? })
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        self.folder.name()
    }

    /// The name of its manifest in messages.
    pub fn manifest_name(&self) -> String {
        format!("{}/{MANIFEST}", self.name().trim_end_matches('/'))
    }

    /// Reads the manifest. None: there is neither one nor anything else.
    pub(crate) fn read(&self) -> Result<Option<Manifest>, DeliveryError> {
        let name = self.manifest_name();
        if let Some(bytes) = self.folder.read(MANIFEST)? {
            let manifest = Manifest::from_json(&bytes);
            return manifest.map(Some).map_err(|why| DeliveryError::BadManifest { name, why });
        }
        match self.folder.any()? {
            None => Ok(None),
            Some(file) => Err(DeliveryError::NoManifest { place: self.name(), file }),
        }
    }

    /// Writes the manifest, in one step.
    pub(crate) fn write(&self, manifest: &Manifest) -> Result<(), DeliveryError> {
        let fail = |error: serde_json::Error| DeliveryError::Write {
            name: self.manifest_name(),
            cause: error.into(),
        };
        self.folder.put(MANIFEST, &manifest.to_json().map_err(fail)?)
    }

    /// Puts a file, in one step; it replaces the one that has the name.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), DeliveryError> {
        self.folder.put(name, bytes)
    }
}
