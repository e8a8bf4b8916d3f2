//! The captures as they are at the moment: the view, the engine, and what pages receive.

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

/// How often it is looked whether a capture has grown.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Bytes that frames may take that were read.
const FRAMES: usize = 256 << 20;

/// What pages receive without a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionState {
    /// The number of the view: it is another one when the captures have grown.
    pub view: u64,
    pub progress: Progress,
    /// The index of this view is built as far as it can be.
    pub built: bool,
    /// All captures have ended.
    pub ended: bool,
    /// What went wrong behind the scenes.
    pub troubles: Vec<String>,
}

/// The set of captures that is shown, or the two that stand side by side.
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

/// What all requests about a set of captures share.
#[derive(Debug)]
pub(crate) struct ViewSession {
    captures: Captures,
    /// What was typed, for pages to show.
    pub command: String,
    current: RwLock<(u64, Arc<View>)>,
    /// The engine of a view, once somebody asked for it.
    engine: Mutex<Option<(u64, Arc<Engine>)>>,
    /// What rows were restricted to last: of which view, as it was typed, and which frames are known to have it.
    filter: Mutex<Option<(u64, String, Arc<SliceFilter>)>>,
    news: watch::Sender<SessionState>,
    /// Whose turn it is to make a file: one after another.
    pub exporting: Semaphore,
    stop: AtomicBool,
    /// It was said that files of a series are gone.
    has_lost_files: AtomicBool,
    asleep: (Mutex<()>, Condvar),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ViewSession {
    /// Opens captures. Nothing of them is read but the heads of chunks.
    pub fn open(
        captures: Captures,
        index: Option<PathBuf>,
        command: String,
    ) -> Result<ViewSession, ServeError> {
        let memory = captures.memory.unwrap_or(FRAMES);
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
            has_lost_files: AtomicBool::new(false),
            asleep: Default::default(),
        })
    }

    /// The view, and its number.
    pub fn view(&self) -> (u64, Arc<View>) {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The view, if it is still the one that a page speaks of.
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

    /// What answers SQL about the captures as they are. It reads heads of chunks when it is made.
    pub fn engine(&self) -> Result<Arc<Engine>, ServeError> {
        let (number, _) = self.view();
        let mut engine = lock(&self.engine);
        if let Some((of, engine)) = &*engine
            && *of == number
        {
            return Ok(engine.clone());
        }
        let made = Arc::new(self.captures.engine(Window::default())?);
        *engine = Some((number, made.clone()));
        Ok(made)
    }

    /// What a text restricts the rows of a view to, which `make` finds out unless it was asked for last.
    pub fn filter(
        &self,
        number: u64,
        text: &str,
        make: impl FnOnce() -> Result<SliceFilter, HttpRefusal>,
    ) -> Result<Arc<SliceFilter>, HttpRefusal> {
        let mut last = lock(&self.filter);
        if let Some((of, known, filter)) = &*last
            && (*of, known.as_str()) == (number, text)
        {
            return Ok(filter.clone());
        }
        let filter = Arc::new(make()?);
        *last = Some((number, text.to_owned(), filter.clone()));
        Ok(filter)
    }

    /// An engine that sees a part of the captures.
    pub fn engine_of(&self, window: Window) -> Result<Engine, ServeError> {
        self.captures.engine(window)
    }

    /// What pages receive.
    pub fn news(&self) -> watch::Receiver<SessionState> {
        self.news.subscribe()
    }

    /// Ends [`ViewSession::work`].
    pub fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _guard = lock(&self.asleep.0);
        self.asleep.1.notify_all();
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Builds the index, and follows captures that are still written, until all have ended or
    /// [`ViewSession::end`].
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

    /// Whether something may still come: to a capture, or behind the last file of a series.
    pub fn is_live(&self, view: &View) -> bool {
        let may_follow = self.captures.may_become_more();
        let captures = view.about().captures;
        captures.iter().any(|capture| !capture.has_ended || (capture.is_continued && may_follow))
    }

    /// Waits until the captures have changed; None: it is over.
    fn wait(&self, view: &View, mut before: Vec<FileMark>) -> Option<Result<View, String>> {
        let captures = view.about().captures;
        loop {
            let now = self.captures.marks(captures.iter().map(|capture| capture.path.clone()));
            if now != before {
                let is_elsewhere =
                    now.iter().zip(&before).take(captures.len()).all(|(a, b)| a == b);
                before = now;
                match self.grow(view) {
                    // Something has come to the folder, and is no file of ours.
                    Ok(grown) if is_elsewhere && grown.about().captures == captures => {}
                    changed => return Some(changed),
                }
            }
            let guard = lock(&self.asleep.0);
            if self.is_over() {
                return None;
            }
            let waited = self.asleep.1.wait_timeout(guard, POLL_INTERVAL);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn build(&self, number: u64, view: &View) {
        let told = |progress: Progress| {
            self.news.send_modify(|news| {
                news.view = number;
                news.progress = progress;
            });
        };
        // The stop flag is what cancels it.
        let built = view.build(self.captures.threads, &told, &self.stop);
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

    /// The same captures with what has been added to them.
    fn grow(&self, view: &View) -> Result<View, String> {
        let set = self.captures.open().map_err(|error| error.to_string())?;
        let grown = view.grown(set).map_err(|error| error.to_string())?;
        let there = grown.about().captures;
        let is_there = |id: &str| there.iter().any(|capture| capture.id == id);
        let before = view.about().captures;
        let gone: Vec<_> = before.iter().filter(|capture| !is_there(&capture.id)).collect();
        if gone.iter().any(|gone| there.iter().any(|capture| capture.path == gone.path)) {
            let what = "a capture was replaced by another one, which is not shown: start \
                        `ppt view` again";
            return Err(what.into());
        }
        // `--keep` removes the oldest files of a series.
        if let Some(first) = gone.first() {
            let path = first.path.display();
            self.trouble_once(format!(
                "{path} and perhaps others were removed: their frames are not shown any more"
            ));
        }
        Ok(grown)
    }

    /// Says something that need not be said twice.
    fn trouble_once(&self, text: String) {
        if !self.has_lost_files.swap(true, Ordering::Relaxed) {
            self.trouble(text);
        }
    }

    /// Says something, unless it was said: a capture that grows meets the same again.
    fn trouble(&self, text: String) {
        let text = escaped(&text);
        self.news.send_if_modified(|news| {
            let is_new = !news.troubles.contains(&text);
            news.troubles.extend(is_new.then_some(text));
            is_new
        });
    }
}
