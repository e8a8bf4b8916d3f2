//! The current state of a set of captures: its view, its engine, and the news for pages.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use ppt_query::{Engine, Window};
use ppt_text::escaped;
use ppt_view::{Progress, SliceFilter, View};
use tokio::sync::{Semaphore, watch};

use crate::captures::{Captures, FileMark};
use crate::error::{HttpRefusal, ServeError};

/// The interval at which captures are checked for growth.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The most bytes of frames that are read.
const FRAME_MEMORY: usize = 256 << 20;

/// The state that pages receive as events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionState {
    /// The number of the view, which changes when the captures grow.
    pub view: u64,
    pub progress: Progress,
    /// Whether the index of this view is built, or building it has failed.
    pub built: bool,
    /// Whether all captures have ended.
    pub ended: bool,
    /// The errors of the worker thread.
    pub troubles: Vec<String>,
}

/// The sessions of one or two sets of captures.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub first: Arc<ViewSession>,
    pub second: Option<Arc<ViewSession>>,
}

impl Sessions {
    pub fn all(&self) -> impl Iterator<Item = &Arc<ViewSession>> {
        [&self.first].into_iter().chain(&self.second)
    }

    pub fn count(&self) -> usize {
        self.all().count()
    }
}

/// The state that all requests about a set of captures share.
#[derive(Debug)]
pub(crate) struct ViewSession {
    captures: Captures,
    /// The command line, which pages show.
    pub command: String,
    /// The number of the view, and the view.
    current: RwLock<(u64, Arc<View>)>,
    /// The engine of the view with this number. None before the first request for it.
    engine: Mutex<Option<(u64, Arc<Engine>)>>,
    /// The filter that was used last.
    filter: Mutex<Option<LastFilter>>,
    news: watch::Sender<SessionState>,
    /// Permits one export at a time.
    pub exporting: Semaphore,
    stop: AtomicBool,
    /// Whether missing files of a series were reported.
    reported_lost_files: AtomicBool,
    /// Wakes the worker thread at the end.
    wake: (Mutex<()>, Condvar),
}

/// A filter of a view, with the text of its condition.
#[derive(Debug)]
struct LastFilter {
    view: u64,
    text: String,
    filter: Arc<SliceFilter>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ViewSession {
    /// Opens captures. Reads only the heads of chunks.
    pub fn open(
        captures: Captures,
        index: Option<PathBuf>,
        command: String,
    ) -> Result<ViewSession, ServeError> {
        let memory = captures.memory.unwrap_or(FRAME_MEMORY);
        let view = View::from_set(captures.open()?, index.as_deref(), memory)?;
        Ok(ViewSession {
            captures,
            command,
            current: RwLock::new((0, Arc::new(view))),
            engine: Mutex::default(),
            filter: Mutex::default(),
            news: watch::Sender::default(),
            exporting: Semaphore::new(1),
            stop: AtomicBool::new(false),
            reported_lost_files: AtomicBool::new(false),
            wake: Default::default(),
        })
    }

    /// The number of the current view, and the view.
    pub fn view(&self) -> (u64, Arc<View>) {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current view, if it has the number of a request.
    pub fn view_of(&self, number: u64) -> Result<Arc<View>, HttpRefusal> {
        let (current, view) = self.view();
        if current == number {
            Ok(view)
        } else {
            Err(HttpRefusal::new(
                hyper::StatusCode::CONFLICT,
                "the capture has grown since: ask once more",
            ))
        }
    }

    /// The engine for SQL about the current captures. Reads the heads of chunks when it is made.
    pub fn engine(&self) -> Result<Arc<Engine>, ServeError> {
        let (number, _) = self.view();
        let mut engine = lock(&self.engine);
        if let Some((engine_number, engine)) = &*engine
            && *engine_number == number
        {
            return Ok(engine.clone());
        }
        let made = Arc::new(self.captures.engine(Window::default())?);
        *engine = Some((number, made.clone()));
        Ok(made)
    }

    /// The filter of the view `number` with the condition `text`. Calls `make` unless it was used last.
    pub fn filter(
        &self,
        number: u64,
        text: &str,
        make: impl FnOnce() -> Result<SliceFilter, HttpRefusal>,
    ) -> Result<Arc<SliceFilter>, HttpRefusal> {
        let mut last = lock(&self.filter);
        if let Some(last) = &*last
            && (last.view, last.text.as_str()) == (number, text)
        {
            return Ok(last.filter.clone());
        }
        let filter = Arc::new(make()?);
        *last = Some(LastFilter { view: number, text: text.to_owned(), filter: filter.clone() });
        Ok(filter)
    }

    /// An engine for a part of the captures.
    pub fn engine_of(&self, window: Window) -> Result<Engine, ServeError> {
        self.captures.engine(window)
    }

    /// The state of the session, with its changes.
    pub fn news(&self) -> watch::Receiver<SessionState> {
        self.news.subscribe()
    }

    /// Ends [`ViewSession::work`].
    pub fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _guard = lock(&self.wake.0);
        self.wake.1.notify_all();
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Builds the index and follows growing captures, until all have ended or [`ViewSession::end`] is called.
    pub fn work(&self) {
        loop {
            let (number, view) = self.view();
            let files = || view.about().captures.into_iter().map(|capture| capture.path);
            let before = self.captures.marks(files());
            self.build(number, &view);
            let ended = !self.is_live(&view);
            self.news.send_modify(|news| (news.built, news.ended) = (true, ended));
            if ended || self.is_over() {
                return;
            }
            let grown = match self.wait(&view, before) {
                None => return,
                Some(grown) => grown,
            };
            match grown {
                Ok(grown) => {
                    let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                    *current = (number + 1, Arc::new(grown));
                    drop(current);
                    self.news.send_modify(|news| {
                        (news.view, news.built) = (number + 1, false);
                        news.progress = Progress::default();
                    });
                }
                Err(text) => {
                    self.trouble(text);
                    return;
                }
            }
        }
    }

    /// Whether a capture may grow, or another file of a series may follow.
    pub fn is_live(&self, view: &View) -> bool {
        let may_follow = self.captures.may_match_more();
        let captures = view.about().captures;
        captures.iter().any(|capture| !capture.has_ended || (capture.is_continued && may_follow))
    }

    /// Waits until the captures have changed. None if the session has ended.
    fn wait(&self, view: &View, mut before: Vec<FileMark>) -> Option<Result<View, String>> {
        let captures = view.about().captures;
        loop {
            let now = self.captures.marks(captures.iter().map(|capture| capture.path.clone()));
            if now != before {
                let is_elsewhere =
                    now.iter().zip(&before).take(captures.len()).all(|(a, b)| a == b);
                before = now;
                match self.grow(view) {
                    // The folder has another new file.
                    Ok(grown) if is_elsewhere && grown.about().captures == captures => {}
                    changed => return Some(changed),
                }
            }
            let guard = lock(&self.wake.0);
            if self.is_over() {
                return None;
            }
            let waited = self.wake.1.wait_timeout(guard, POLL_INTERVAL);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn build(&self, number: u64, view: &View) {
        let report = |progress: Progress| {
            self.news.send_modify(|news| {
                news.view = number;
                news.progress = progress;
            });
        };
        let built = view.build(self.captures.threads, &report, &self.stop);
        if self.is_over() {
            return;
        }
        match built.map(|_| view.save()) {
            Err(error) => self.trouble(error.to_string()),
            Ok(Err(error)) => self.trouble(format!(
                "the index is not kept, so that the next `ppt view` builds it again: {error}"
            )),
            Ok(Ok(())) => {}
        }
    }

    /// A view of the captures after they have grown.
    fn grow(&self, view: &View) -> Result<View, String> {
        let set = self.captures.open().map_err(|error| error.to_string())?;
        let grown = view.grown(set).map_err(|error| error.to_string())?;
        let after = grown.about().captures;
        let is_present = |id: &str| after.iter().any(|capture| capture.id == id);
        let before = view.about().captures;
        let gone: Vec<_> = before.iter().filter(|capture| !is_present(&capture.id)).collect();
        if gone.iter().any(|gone| after.iter().any(|capture| capture.path == gone.path)) {
            let what = "a capture was replaced by another one, which is not shown: start \
                        `ppt view` again";
            return Err(what.into());
        }
        // `--keep` removes the oldest files of a series.
        if let Some(first) = gone.first() {
            let path = first.path.display();
            self.report_lost_files(format!(
                "{path} and perhaps others were removed: their frames are not shown any more"
            ));
        }
        Ok(grown)
    }

    /// Reports missing files, the first time only.
    fn report_lost_files(&self, text: String) {
        if !self.reported_lost_files.swap(true, Ordering::Relaxed) {
            self.trouble(text);
        }
    }

    /// Reports an error, unless it was reported before. A growing capture may cause it again.
    fn trouble(&self, text: String) {
        let text = escaped(&text);
        self.news.send_if_modified(|news| {
            let is_new = !news.troubles.contains(&text);
            news.troubles.extend(is_new.then_some(text));
            is_new
        });
    }
}
