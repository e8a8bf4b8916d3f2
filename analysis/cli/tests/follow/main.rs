//! `ppt export --follow`: each row is in exactly one file, also if the exporter is killed, and every failure
//! has a message.

#[path = "../../../oracles/ask.rs"]
#[allow(dead_code, reason = "other tests need the rest")]
pub mod ask;
mod delivered;
#[path = "../../../report/tests/made/kinds.rs"]
#[allow(dead_code, reason = "other tests need the rest")]
mod every;
mod group;
mod killed;
mod otlp;
mod refused;
mod series;
mod spans;
mod stopped;
mod store;
mod stored;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "other tests need the rest")]
mod support;
