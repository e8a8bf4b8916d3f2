// Events of the server.

import { plain } from './text.js';

/** The time before a page connects again. */
const PAUSE = 2000;

/** Waits until the page is visible. */
function seen() {
  if (!document.hidden) return undefined;
  return new Promise((done) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener('visibilitychange', look);
      done();
    };
    document.addEventListener('visibilitychange', look);
  });
}

/**
 * Listens while the page is visible. Connects again if the connection ends. A browser has six connections to a
 * server for all tabs, so invisible tabs keep none.
 */
export async function listen(page, pane) {
  for (;;) {
    await seen();
    const asking = new AbortController();
    const hide = () => document.hidden && asking.abort();
    document.addEventListener('visibilitychange', hide);
    try {
      await pane.api.events((name, data) => page.event(pane, name, data), asking.signal);
    } catch (error) {
      if (error.status === 401) {
        page.notice(plain(error.message));
        return;
      }
    } finally {
      document.removeEventListener('visibilitychange', hide);
    }
    if (asking.signal.aborted) continue;
    page.notice('The server has ended, or cannot be reached. This page shows what it has, and asks again.');
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}
