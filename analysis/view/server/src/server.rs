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
use crate::session::{Sessions, ViewSession};
use crate::token::Token;

/// Most connections at a time.
const CONNECTIONS: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a thread's stack: planning SQL walks expressions by recursion.
const STACK: usize = 32 << 20;

/// How captures are shown.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The captures.
    pub captures: Captures,
    /// Others, which stand beside them.
    pub second: Option<Captures>,
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
    sessions: Arc<Sessions>,
    address: SocketAddr,
    token: Token,
    /// One for each set.
    workers: Vec<JoinHandle<()>>,
    /// None: it has ended.
    runtime: Option<Runtime>,
}

impl ViewServer {
    /// Opens the captures, and begins to answer on 127.0.0.1. The index is built in the background.
    ///
    /// # Errors
    /// See [`ServeError`].
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
        runtime.spawn(accept(listener, sessions.clone(), guard));
        let (workers, runtime) = (Vec::new(), Some(runtime));
        let mut server = ViewServer { sessions, address, token, workers, runtime };
        for session in server.sessions.clone().all() {
            let own = session.clone();
            let worker = std::thread::Builder::new().name("ppt-view-index".into());
            let worker = worker.spawn(move || own.work()).map_err(system("threads"))?;
            server.workers.push(worker);
        }
        Ok(server)
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
    /// Ends at once, even if a browser still reads.
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
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors are short, for example.
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
    // A client that breaks off is no error of the server.
    let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
    drop(permit);
}

/// Says that there are too many connections.
fn refuse(stream: &TcpStream) {
    let text = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let _ = stream.try_write(text.as_bytes());
}
