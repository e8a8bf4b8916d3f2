//! End-to-end tests: real programs are compiled and attached to while they run, and the captures
//! are compared with their own counts. Each folder tests one capability of ppt; `fixtures` is
//! shared.

/// Attaching: possible targets, refusals, and messages.
mod attach {
    mod blocking;
    mod doctor;
    mod failing;
    mod filtered;
    mod frozen;
    mod least_privilege;
    mod little_memory;
    mod made;
    mod names;
    mod odd;
    mod refusals;
    mod starting;
    mod torn;
}

/// Files: writing, and reading after any kind of end.
mod captures {
    mod capture_files;
    mod capture_limits;
    mod compressed;
    mod outputs;
    mod rotation;
    mod sequences;
    mod taken_away;
    mod two_writers;
    mod unfinished;
}

/// The promises of documents and packages.
mod docs {
    mod demo;
    mod examples;
    mod experiments;
    mod go;
    mod java;
    mod messages;
    mod node;
    mod packages;
    mod paths;
    mod readme;
    mod relay;
    pub mod stable;
}

/// Shared by the tests: a bench, targets, steps.
mod fixtures {
    pub mod busy;
    pub mod explained;
    pub mod family;
    pub mod first;
    pub mod flood;
    pub mod go;
    pub mod java;
    pub mod ledger;
    pub mod limits;
    pub mod node;
    pub mod output;
    pub mod postgresql;
    pub mod preloaded;
    pub mod python;
    pub mod refused;
    pub mod released;
    pub mod rust;
    pub mod scraped;
    pub mod steady;
    pub mod stepped;
    pub mod support;
    pub mod values;
}

/// Processes that ppt starts, and forked ones.
mod follow {
    mod daemons;
    mod family;
    mod following;
    mod following_odd;
    mod processes;
    mod run;
    mod run_inherited;
    mod sandboxed;
    mod supervised;
}

/// Frame files, the code of each language, and every way to link it.
mod languages {
    mod binaries;
    mod contract;
    mod counting;
    mod cpp;
    mod fmt;
    mod functions;
    mod go;
    mod java;
    mod lengths;
    mod node;
    mod objects;
    mod points;
    mod pptc;
    mod python;
    mod rust;
    mod rust_builds;
    mod spans;
    mod tracing;
    mod values;
}

/// Events during a session.
mod session {
    mod account;
    mod choosing;
    mod clocks;
    mod counters;
    mod crowded;
    mod detached;
    mod endings;
    mod flight;
    mod graph;
    mod growing;
    pub mod kernel;
    mod killed;
    mod masks;
    mod masks_odd;
    mod memory;
    pub mod metrics;
    mod metrics_odd;
    mod modules;
    mod probes;
    mod sessions;
    mod stack_names;
    mod stacks;
    mod thread_names;
    mod top;
    mod view;
    mod whatif_harm;
    mod whatif_live;
    mod whatif_numbers;
    mod whatif_paused;
    mod why;
}

/// Unmodified programs.
mod with {
    mod commands;
    mod descriptors;
    mod files;
    mod hops;
    mod io_uring;
    mod locks;
    mod postgresql;
    mod preloading;
    mod requests;
    mod servers;
    mod services;
    mod wire;
}

/// Malicious targets, users and text.
mod trust {
    mod answers;
    mod hostile;
    mod hostile_text;
    mod hostile_user;
    mod unanswering;
}
