//! The server: a port of the loopback interface, and its threads.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::captures::Captures;
use crate::error::ServeError;
use crate::guard::Guard;
use crate::routes;
use crate::session::{Sessions, ViewSession};
use crate::token::Token;

/// The most connections at the same time.
const MAX_CONNECTIONS: usize = 64;
/// The longest time that a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The stack of a thread in bytes. Planning SQL walks expressions by recursion.
const STACK_BYTES: usize = 32 << 20;

/// The captures of a server, and its port.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The first set of captures.
    pub captures: Captures,
    /// The second set of captures, which the page compares with the first one.
    pub second: Option<Captures>,
    /// The folder for indexes. None if they are not written.
    pub index: Option<PathBuf>,
    /// The port. 0 for any free port.
    pub port: u16,
    /// The command line, which the page shows.
    pub command: String,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct ViewServer {
    sessions: Arc<Sessions>,
    address: SocketAddr,
    token: Token,
    /// A thread for each set.
    workers: Vec<JoinHandle<()>>,
    /// None after the end.
    runtime: Option<Runtime>,
}

impl ViewServer {
    /// Opens the captures, and begins to answer on 127.0.0.1. Threads build the indexes.
    ///
    /// # Errors
    /// The captures cannot be opened, or the port cannot be bound.
    pub fn start(options: ServeOptions) -> Result<ViewServer, ServeError> {
        let open = |captures| {
            ViewSession::open(captures, options.index.clone(), options.command.clone())
                .map(Arc::new)
        };
        let first = open(options.captures)?;
        let second = options.second.map(open).transpose()?;
        let sessions = Arc::new(Sessions { first, second });
        let system = |what| move |error| ServeError::System { what, error };
        let token = Token::random().map_err(system("random numbers"))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("ppt-view")
            .thread_stack_size(STACK_BYTES)
            .enable_io()
            .enable_time()
            .build()
            .map_err(system("threads"))?;
        let bind = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port));
        let bound = runtime.block_on(bind);
        let listener = bound.map_err(|error| ServeError::Bind { port: options.port, error })?;
        let address = listener.local_addr().map_err(system("the address of the port"))?;
        let guard = Arc::new(Guard::new(address.port(), token.clone()));
        runtime.spawn(accept(listener, sessions.clone(), guard));
        let (workers, runtime) = (Vec::new(), Some(runtime));
        let mut server = ViewServer { sessions, address, token, workers, runtime };
        for session in server.sessions.clone().all() {
            let session = session.clone();
            let worker = std::thread::Builder::new().name("ppt-view-index".into());
            let worker = worker.spawn(move || session.work()).map_err(system("threads"))?;
            server.workers.push(worker);
        }
        Ok(server)
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that requests need.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The URL of the page with the token. It gives access to the captures.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token.text())
    }
}

impl Drop for ViewServer {
    /// Ends at once, even during answers.
    fn drop(&mut self) {
        self.sessions.all().for_each(|session| session.end());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

async fn accept(listener: TcpListener, sessions: Arc<Sessions>, guard: Arc<Guard>) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors may be exhausted.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        match free.clone().try_acquire_owned() {
            Ok(permit) => _ = tokio::spawn(serve(stream, permit, sessions.clone(), guard.clone())),
            Err(_) => refuse(&stream),
        }
    }
}

/// Answers the requests of a connection.
async fn serve(
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
    sessions: Arc<Sessions>,
    guard: Arc<Guard>,
) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request| {
        let (sessions, guard) = (sessions.clone(), guard.clone());
        async move { Ok::<_, Infallible>(routes::answer(sessions, guard, request).await) }
    });
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    // A client may close the connection at any time.
    let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
    drop(permit);
}

/// Answers that there are too many connections.
fn refuse(stream: &TcpStream) {
    let text = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let _ = stream.try_write(text.as_bytes());
}
