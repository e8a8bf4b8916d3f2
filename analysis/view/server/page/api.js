// Requests to the server.

const KEY = 'ppt-view-token';

/** Removes the token from the address, so that no bookmark and no screen shows it. */
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

/** A refusal of the server: its `status` and its text. */
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

/** The requests for a set of captures: `/v1/` for the first one, `/v1/second/` for the second one. */
export class Api {
  constructor(place) {
    this.place = place;
  }

  async json(name, asked, signal) {
    return (await ask(this.place + name, asked, signal)).json();
  }

  about() { return this.json('about'); }
  panels() { return this.json('panels'); }
  panel(asked, signal) { return this.json('panel', asked, signal); }
  frame(asked) { return this.json('frame', asked); }
  entry(asked) { return this.json('entry', asked); }
  edges(asked) { return this.json('edges', asked); }
  find(asked, signal) { return this.json('find', asked, signal); }
  filter(asked) { return this.json('filter', asked); }
  sql(text) { return this.json('sql', { sql: text }); }
  lengths(asked) { return this.json('lengths', asked); }
  points(signal) { return this.json('points', undefined, signal); }
  paths(asked) { return this.json('paths', asked); }
  why(asked, signal) { return this.json('why', asked, signal); }
  compare(asked, signal) { return this.json('compare', asked, signal); }

  async saved(asked) {
    return (await ask(`${this.place}export`, asked)).blob();
  }

  /** Requests a window, and passes on its bytes as they arrive. */
  async window(asked, signal, take) {
    const reader = (await ask(`${this.place}window`, asked, signal)).body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      take(value);
    }
  }

  /** Calls `tell(name, data)` for each event until the connection ends. */
  async events(tell, signal) {
    const reader = (await ask(`${this.place}events`, undefined, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
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
}
