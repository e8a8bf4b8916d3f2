//! The peers, one module each.

mod fastrace;
mod lttng;
mod perfetto;
pub mod ppt;
mod spdlog;
mod tracing;
mod tracy;
mod uftrace;
mod usdt;

use crate::peer::Peer;

/// All, ppt first: the others are compared with it.
pub fn all() -> Vec<Box<dyn Peer>> {
    let [discard, overwrite] = lttng::Lttng::both();
    vec![
        Box::new(ppt::Ppt::Peak),
        Box::new(ppt::Ppt::LowPower),
        Box::new(ppt::Ppt::Paper),
        Box::new(discard),
        Box::new(overwrite),
        Box::new(usdt::Usdt),
        Box::new(uftrace::Uftrace),
        Box::new(perfetto::Perfetto),
        Box::new(tracy::Tracy),
        Box::new(fastrace::Fastrace),
        Box::new(tracing::Tracing),
        Box::new(spdlog::Spdlog),
    ]
}
