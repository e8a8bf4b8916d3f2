//! Starts the output of a capture.

use ppt_agent::Session;
use ppt_listener::{Feed, Flight, Listener, PreparedListener};

use super::outputs::{self, Outputs};
use super::{filter, flight, options};
use crate::args;
use crate::code::Code;
use crate::failure::Failure;

/// Starts a capture of `feeds`, or a flight recorder.
pub(super) fn begin(
    options: &args::CaptureArgs,
    sessions: &[Session],
    feeds: Vec<Feed>,
    outputs: &Outputs,
) -> Result<(PreparedListener, Option<Flight>, filter::Remarks), Failure> {
    let name = outputs.name();
    let failed = |error| Failure::listener(&name, error);
    let fail = |error| Failure::failed(Code::System, format!("{name}: {error}"));
    let (header, listener) = (outputs::header(), options::listen_options(options, sessions));
    match outputs {
        Outputs::Files(files) => {
            let (filter, remarks) = filter::filter(options)?.unzip();
            let listener = ppt_listener::ListenerOptions { filter, ..listener };
            let first = files.first(&listener.behind).map_err(fail)?;
            let rotation = Some(files.rotation());
            let begun = Listener::begin(first, header, feeds, listener, rotation);
            Ok((begun.map_err(failed)?, None, remarks.unwrap_or_default()))
        }
        Outputs::Windows(windows) => {
            let Some(flight) = flight::options(options) else { unreachable!("--flight is given") };
            let (watch, remarks) = flight::watch(options)?;
            // The chunks of the capture itself go nowhere.
            let listener = ppt_listener::ListenerOptions { compress: None, ..listener };
            let nowhere = ppt_listener::nowhere();
            let mut begun =
                Listener::begin(std::io::sink(), header, feeds, listener, Some(nowhere))
                    .map_err(failed)?;
            let flight = begun.flight(flight, watch, windows.files()).map_err(failed)?;
            Ok((begun, Some(flight), remarks))
        }
    }
}
