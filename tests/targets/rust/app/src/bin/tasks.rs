//! tasks THREADS TASKS STEPS: tasks that hold a scope over awaits. Each step of a task runs in
//! another thread than the previous one; odd tasks are dropped half-way.
#![deny(warnings)]
#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

ppt_probe::include_frames!("job");
use job::{Job, Kind, Login};

/// A queue for each thread; `None` ends it.
type Queue = Sender<Option<Arc<Task>>>;

struct Task {
    queues: Vec<Queue>,
    /// How often it has been woken, and the limit, after which it is dropped.
    woken: AtomicUsize,
    limit: usize,
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        // The next thread waits for the lock until the currently polling one has released it.
        let next = self.woken.fetch_add(1, Ordering::SeqCst) % self.queues.len();
        self.queues[next].clone().send(Some(self)).unwrap();
    }
}

/// Runs tasks; `left` is the number of unfinished ones.
fn work(queue: &Receiver<Option<Arc<Task>>>, left: &AtomicUsize) {
    while let Some(task) = queue.recv().unwrap() {
        let mut future = task.future.lock().unwrap();
        let Some(running) = &mut *future else { continue };
        let waker = Waker::from(task.clone());
        let polled = running.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() || task.woken.load(Ordering::SeqCst) > task.limit {
            *future = None;
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                task.queues.iter().for_each(|queue| queue.send(None).unwrap());
            }
        }
    }
}

/// Continues in another thread.
async fn elsewhere() {
    let mut waited = false;
    poll_fn(|context| {
        if waited {
            return Poll::Ready(());
        }
        waited = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn task(number: i32, steps: u64) {
    let mut scope = Job::scope(|f| f.who = number);
    for step in 1..=steps {
        if step > 1 {
            elsewhere().await;
        }
        Login::write(|f| {
            f.who = number;
            f.when = job::now();
        });
        scope.set(|f| {
            f.bytes += step;
            f.name.set(std::thread::current().name().unwrap());
        });
    }
    scope.set(|f| f.kind = Kind::Login);
}

fn run(threads: usize, tasks: usize, steps: usize) -> u64 {
    let (queues, ends): (Vec<Queue>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
    let left = &AtomicUsize::new(tasks);
    std::thread::scope(|scope| {
        for (number, queue) in ends.into_iter().enumerate() {
            let name = std::thread::Builder::new().name(format!("worker {number}"));
            name.spawn_scoped(scope, move || work(&queue, left)).unwrap();
        }
        for number in 0..tasks {
            let limit = if number % 2 == 1 { steps / 2 } else { steps };
            Waker::from(Arc::new(Task {
                queues: queues.clone(),
                woken: AtomicUsize::new(number),
                limit: number + limit,
                future: Mutex::new(Some(Box::pin(task(number as i32, steps as u64)))),
            }))
            .wake();
        }
    });
    let steps: usize = (0..tasks).map(|it| if it % 2 == 1 { steps / 2 } else { steps }).sum();
    (steps + tasks) as u64
}

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse().unwrap());
    let mut next = || args.next().unwrap();
    let (threads, tasks, steps) = (next(), next(), next());
    app::serve(|| run(threads, tasks, steps));
}
