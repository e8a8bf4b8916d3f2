//! Delivery into an object store, below a prefix.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::DeliveryError;
use crate::object_client::{ClientError, ObjectClient, PutCondition, StoredObject};
use crate::outage::{OutageWatch, persist};

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

/// Objects below a prefix. The manifest is replaced only if no other exporter has replaced it.
pub(crate) struct DeliveryObjects {
    client: Arc<dyn ObjectClient>,
    prefix: String,
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
        client: Arc<dyn ObjectClient>,
        prefix: &str,
        name: String,
        watch: Box<dyn OutageWatch>,
    ) -> DeliveryObjects {
        let prefix = prefix.to_owned();
        DeliveryObjects { client, prefix, name, watch, expected: Expected::Nothing }
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Whether a second exporter is detected.
    pub fn is_guarded(&self) -> bool {
        self.expected != Expected::Anything
    }

    /// The path of an object in the store, and its name in messages.
    fn path(&self, name: &str) -> (String, String) {
        let full = format!("{}/{name}", self.name.trim_end_matches('/'));
        match self.prefix.as_str() {
            "" => (name.to_owned(), full),
            prefix => (format!("{prefix}/{name}"), full),
        }
    }

    /// Reads an object. None if it does not exist.
    async fn get(&self, name: &str) -> Result<Option<StoredObject>, DeliveryError> {
        let (path, full) = self.path(name);
        match persist(&*self.watch, &full, || self.client.get(&path)).await? {
            Ok(found) => Ok(Some(found)),
            Err(ClientError::NotFound(_)) => Ok(None),
            Err(error) => Err(refused(&full, error)),
        }
    }

    /// Puts an object under a condition. Returns its ETag.
    async fn put_if(
        &self,
        name: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<Result<Option<String>, ClientError>, DeliveryError> {
        let (path, full) = self.path(name);
        let request = || self.client.put(&path, bytes.clone(), condition.clone());
        persist(&*self.watch, &full, request).await
    }

    /// The content of an object. None if it does not exist.
    pub async fn content(&self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        Ok(self.get(name).await?.map(|object| object.bytes.into()))
    }

    /// Removes an object if it exists.
    pub async fn remove(&self, name: &str) -> Result<(), DeliveryError> {
        let (path, full) = self.path(name);
        match persist(&*self.watch, &full, || self.client.remove(&path)).await? {
            Ok(()) | Err(ClientError::NotFound(_)) => Ok(()),
            Err(error) => Err(refused(&full, error)),
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
        Ok(found.map(|object| object.bytes.into()))
    }

    /// The name of some object below the prefix. None if there is none.
    pub async fn any_object(&self) -> Result<Option<String>, DeliveryError> {
        let found = persist(&*self.watch, &self.name, || self.client.any_object(&self.prefix));
        found.await?.map_err(|error| refused(&self.name, error))
    }

    /// Puts an object in one step. It replaces an object of the same name.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        let put = self.put_if(name, bytes.into(), PutCondition::Always).await?;
        put.map(drop).map_err(|error| refused(&self.path(name).1, error))
    }

    /// Replaces the version of an object that was read or written last.
    ///
    /// # Errors
    /// Another exporter has replaced it, or the store refuses.
    pub async fn replace(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        let (bytes, full) = (Bytes::from(bytes), self.path(name).1);
        for _ in 0..MAX_CONFLICTS {
            let condition = match &self.expected {
                Expected::Nothing => PutCondition::Absent,
                Expected::Version(version) => {
                    PutCondition::Version(version.clone().unwrap_or_else(|| NO_ETAG.to_owned()))
                }
                Expected::Anything => PutCondition::Always,
            };
            let error = match self.put_if(name, bytes.clone(), condition).await? {
                Ok(version) if self.is_guarded() => {
                    self.expected = Expected::Version(version);
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(ClientError::NoConditions(_)) => {
                    self.expected = Expected::Anything;
                    continue;
                }
                Err(ClientError::Unsupported(_)) => {
                    return Err(DeliveryError::NoConditionalPut { name: self.name() });
                }
                Err(error @ ClientError::ConditionFailed(_)) => error,
                Err(error) => return Err(refused(&full, error)),
            };
            // If the store took the object and its answer got lost, the bytes are equal.
            match self.get(name).await? {
                Some(found) if found.bytes == bytes => {
                    self.expected = Expected::Version(found.version);
                    return Ok(());
                }
                Some(found) if self.expected == Expected::Version(found.version.clone()) => {}
                None if self.expected == Expected::Nothing => {}
                None => return Err(refused(&full, error)),
                Some(_) => return Err(DeliveryError::OtherExporter { name: self.name() }),
            }
        }
        Err(DeliveryError::OtherExporter { name: self.name() })
    }

    /// Checks that the store applies conditions. Otherwise two exporters could write at once.
    pub async fn check(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), DeliveryError> {
        if !self.is_guarded() {
            return Ok(());
        }
        let condition = PutCondition::Version(NO_ETAG.to_owned());
        match self.put_if(name, bytes.into(), condition).await? {
            Err(ClientError::ConditionFailed(_)) => Ok(()),
            Ok(_) | Err(ClientError::NoConditions(_) | ClientError::Unsupported(_)) => {
                Err(DeliveryError::NoConditionalPut { name: self.name() })
            }
            Err(error) => Err(refused(&self.path(name).1, error)),
        }
    }
}

fn refused(name: &str, error: ClientError) -> DeliveryError {
    DeliveryError::StoreRefused { name: name.to_owned(), cause: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;

    /// Objects with their versions, and what happens to the next answers.
    #[derive(Default)]
    struct FakeStore {
        objects: Mutex<BTreeMap<String, (Bytes, usize)>>,
        /// Whether the store does what it is asked for, and its answer gets lost.
        loses_answers: bool,
        ignores_conditions: bool,
    }

    #[async_trait]
    impl ObjectClient for FakeStore {
        async fn get(&self, path: &str) -> Result<StoredObject, ClientError> {
            let objects = self.objects.lock().unwrap();
            let (bytes, version) =
                objects.get(path).ok_or_else(|| ClientError::NotFound(path.to_owned()))?;
            Ok(StoredObject { bytes: bytes.clone(), version: Some(version.to_string()) })
        }

        async fn put(
            &self,
            path: &str,
            bytes: Bytes,
            condition: PutCondition,
        ) -> Result<Option<String>, ClientError> {
            let mut objects = self.objects.lock().unwrap();
            let current = objects.get(path).map(|object| object.1);
            let holds = match condition {
                PutCondition::Always => true,
                PutCondition::Absent => current.is_none(),
                PutCondition::Version(version) => {
                    current.map(|current| current.to_string()) == Some(version)
                }
            };
            if !holds && !self.ignores_conditions {
                return Err(ClientError::ConditionFailed(path.to_owned()));
            }
            let next = current.unwrap_or(0) + 1;
            objects.insert(path.to_owned(), (bytes, next));
            match self.loses_answers {
                true => Err(ClientError::ConditionFailed("asked again".to_owned())),
                false => Ok(Some(next.to_string())),
            }
        }

        async fn remove(&self, path: &str) -> Result<(), ClientError> {
            let removed = self.objects.lock().unwrap().remove(path);
            removed.map(drop).ok_or_else(|| ClientError::NotFound(path.to_owned()))
        }

        async fn any_object(&self, prefix: &str) -> Result<Option<String>, ClientError> {
            let objects = self.objects.lock().unwrap();
            Ok(objects.keys().find(|path| path.starts_with(prefix)).cloned())
        }
    }

    struct Patient;

    impl OutageWatch for Patient {
        fn limit(&self) -> Duration {
            Duration::from_secs(600)
        }
        fn began(&self, _: &str) {}
        fn ended(&self, _: Duration) {}
        fn is_stopped(&self) -> bool {
            false
        }
    }

    fn objects(store: &Arc<FakeStore>) -> DeliveryObjects {
        let name = "s3://b/p".to_owned();
        DeliveryObjects::new(store.clone(), "p", name, Box::new(Patient))
    }

    /// Requests take tokio's clock.
    fn run<T>(task: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        runtime.block_on(task)
    }

    #[test]
    fn of_two_exporters_the_first_one_ends() {
        let store = Arc::new(FakeStore::default());
        let (mut first, mut second) = (objects(&store), objects(&store));
        run(async {
            assert_eq!(first.read("m").await.unwrap(), None);
            first.replace("m", b"1".to_vec()).await.unwrap();
            first.check("m", b"1".to_vec()).await.unwrap();
            assert_eq!(second.read("m").await.unwrap(), Some(b"1".to_vec()));
            second.replace("m", b"2".to_vec()).await.unwrap();
            let error = first.replace("m", b"3".to_vec()).await.unwrap_err();
            assert!(matches!(error, DeliveryError::OtherExporter { .. }), "{error}");
            second.replace("m", b"4".to_vec()).await.unwrap();
            assert_eq!(second.content("m").await.unwrap(), Some(b"4".to_vec()));
            assert_eq!(second.any_object().await.unwrap(), Some("p/m".to_owned()));
            second.remove("m").await.unwrap();
            second.remove("m").await.unwrap();
            assert_eq!(second.any_object().await.unwrap(), None);
        });
    }

    #[test]
    fn an_answer_that_gets_lost_is_no_other_exporter() {
        let store = Arc::new(FakeStore { loses_answers: true, ..FakeStore::default() });
        let mut exporter = objects(&store);
        run(async {
            for bytes in [b"1", b"2", b"3"] {
                exporter.replace("m", bytes.to_vec()).await.unwrap();
            }
        });
        assert_eq!(run(store.get("p/m")).unwrap().version.as_deref(), Some("3"));
    }

    #[test]
    fn a_store_that_ignores_conditions_is_noticed() {
        let store = Arc::new(FakeStore { ignores_conditions: true, ..FakeStore::default() });
        let mut exporter = objects(&store);
        run(async {
            exporter.replace("m", b"1".to_vec()).await.unwrap();
            let error = exporter.check("m", b"1".to_vec()).await.unwrap_err();
            assert!(matches!(error, DeliveryError::NoConditionalPut { .. }), "{error}");
        });
    }
}
