//! `ppt export --follow`: each row is in exactly one file, also if the exporter is killed, and every failure
//! has a message.

mod delivered;
mod group;
mod killed;
mod otlp;
mod refused;
mod series;
mod spans;
mod stopped;
mod store;
mod stored;
