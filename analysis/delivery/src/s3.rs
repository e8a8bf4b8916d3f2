//! Object stores that speak S3.

#[cfg(feature = "s3")]
mod client;

use std::sync::Arc;

use crate::object_client::{ClientError, ObjectClient};

/// Makes a client of a bucket that speaks S3. The environment names the store and has the credentials
/// (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and so on).
///
/// # Errors
/// The environment contradicts itself, or the feature `s3` is off.
#[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "no client takes the name"))]
pub fn s3_client(bucket: &str) -> Result<Arc<dyn ObjectClient>, ClientError> {
    #[cfg(feature = "s3")]
    return client::client(bucket);
    #[cfg(not(feature = "s3"))]
    Err(ClientError::NoClient)
}
