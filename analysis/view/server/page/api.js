// What is asked of the server.

const KEY = 'ppt-view-token';

/** Takes the token out of the address, so that no bookmark and no screen shows it. */
export function takeToken() {
  const words = new URLSearchParams(location.hash.slice(1));
  const token = words.get('token');
  if (token) {
    sessionStorage.setItem(KEY, token);
    words.delete('token');
    history.replaceState(null, '', words.size ? `#${words}` : location.pathname);
  }
  return sessionStorage.getItem(KEY);
}

/** The server refuses: `status`, and what it says. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, body, signal) {
  const headers = { authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ''}` };
  const method = body === undefined ? 'GET' : 'POST';
  const answer = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, said.error ?? answer.statusText);
  }
  return answer;
}

export const about = async () => (await ask('/v1/about')).json();
export const panels = async () => (await ask('/v1/panels')).json();
export const panel = async (asked, signal) => (await ask('/v1/panel', asked, signal)).json();
export const frame = async (asked) => (await ask('/v1/frame', asked)).json();
export const entry = async (asked) => (await ask('/v1/entry', asked)).json();
export const edges = async (asked) => (await ask('/v1/edges', asked)).json();
export const find = async (asked, signal) => (await ask('/v1/find', asked, signal)).json();
export const sql = async (text) => (await ask('/v1/sql', { sql: text })).json();
export const lengths = async (asked) => (await ask('/v1/lengths', asked)).json();
export const saved = async (asked) => (await ask('/v1/export', asked)).blob();

/** Asks for a window, and hands over bytes as they come. */
export async function window(asked, signal, take) {
  const reader = (await ask('/v1/window', asked, signal)).body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    take(value);
  }
}

/** Listens to events until the connection ends: `tell(name, data)`. */
export async function events(tell) {
  const reader = (await ask('/v1/events')).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split('\n\n');
    text = parts.pop();
    for (const part of parts) {
      const name = /^event: (.*)$/m.exec(part);
      const data = /^data: (.*)$/m.exec(part);
      if (name && data) tell(name[1], JSON.parse(data[1]));
    }
  }
}
