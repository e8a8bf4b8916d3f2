//! The server: a port of the loopback interface, and the threads behind it.

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
use crate::session::ViewSession;
use crate::token::Token;

/// Most connections at a time.
const CONNECTIONS: usize = 64;
/// How long a client may take to send the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a thread's stack: planning SQL walks expressions by recursion.
const STACK: usize = 32 << 20;

/// How captures are shown.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The captures.
    pub captures: Captures,
    /// The folder where indexes are kept; None: nowhere.
    pub index: Option<PathBuf>,
    /// The port; 0: any that is free.
    pub port: u16,
    /// The command that was typed, which the page shows.
    pub command: String,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct ViewServer {
    session: Arc<ViewSession>,
    address: SocketAddr,
    token: Token,
    worker: Option<JoinHandle<()>>,
    /// None: it has ended.
    runtime: Option<Runtime>,
}

impl ViewServer {
    /// Opens the captures, and begins to answer on 127.0.0.1. The index is built meanwhile.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(options: ServeOptions) -> Result<ViewServer, ServeError> {
        let session = ViewSession::open(options.captures, options.index, options.command)?;
        let session = Arc::new(session);
        let system = |what| move |error| ServeError::System { what, error };
        let token = Token::random().map_err(system("random numbers"))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("ppt-view")
            .thread_stack_size(STACK)
            .enable_io()
            .enable_time()
            .build()
            .map_err(system("threads"))?;
        let bind = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port));
        let bound = runtime.block_on(bind);
        let listener = bound.map_err(|error| ServeError::Bind { port: options.port, error })?;
        let address = listener.local_addr().map_err(system("the address of the port"))?;
        let guard = Arc::new(Guard::new(address.port(), token.clone()));
        runtime.spawn(accept(listener, session.clone(), guard));
        let own = session.clone();
        let worker = std::thread::Builder::new().name("ppt-view-index".into());
        let worker = worker.spawn(move || own.work()).map_err(system("threads"))?;
        let (worker, runtime) = (Some(worker), Some(runtime));
        Ok(ViewServer { session, address, token, worker, runtime })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a page has to know.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The address that opens the page. Whoever knows it sees everything.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token.text())
    }
}

impl Drop for ViewServer {
    /// Ends at once, whoever still reads.
    fn drop(&mut self) {
        self.session.end();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

async fn accept(listener: TcpListener, session: Arc<ViewSession>, guard: Arc<Guard>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors are short, for example.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        match free.clone().try_acquire_owned() {
            Ok(permit) => _ = tokio::spawn(serve(stream, permit, session.clone(), guard.clone())),
            Err(_) => refuse(&stream),
        }
    }
}

/// Answers the requests of a connection.
async fn serve(
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
    session: Arc<ViewSession>,
    guard: Arc<Guard>,
) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request| {
        let (session, guard) = (session.clone(), guard.clone());
        async move { Ok::<_, Infallible>(routes::answer(session, guard, request).await) }
    });
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A client that breaks off is no error of the server.
    let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
    drop(permit);
}

/// Says that there are too many connections.
fn refuse(stream: &TcpStream) {
    let text = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let _ = stream.try_write(text.as_bytes());
}
