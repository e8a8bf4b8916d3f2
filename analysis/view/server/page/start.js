// The start panel: the time by name, the slowest intervals with their causes, losses, and next steps.

import { colour } from './colours.js';
import { term } from './glossary.js';
import { counted, duration, grouped, moment, plain } from './text.js';
import { make } from './elements.js';

/** The number of frames from which answers need a click. */
const MAX_FRAMES = 1000000n;
/** The number of names, and of slow intervals. */
const NAMES = 5;
const SLOW = 3;

export class Start {
  constructor(page) {
    this.page = page;
  }

  /** Makes the panel. Answers of the server are inserted when they arrive. */
  nodes(signal) {
    const { about, pane } = this.page;
    const nodes = [make('h2', '', 'What this program did'), make('p', '', this.sentence())];
    const answers = make('div');
    if (about.built && !about.live && about.from !== null && pane.captured <= MAX_FRAMES) {
      if (pane.started?.view === about.view) answers.append(...pane.started.nodes);
      else {
        answers.append(make('p', 'faint', 'Reading what was slow …'));
        this.ask(answers, signal);
      }
    } else if (about.from !== null) answers.append(this.list([
      ['See which work takes the time:', 'time', 'What takes the time'],
      ['Go to the slowest:', 'slowest', 'The slowest'],
    ]));
    nodes.push(answers, ...this.missing(), ...this.next());
    nodes.push(make('h3', '', 'What was captured'), this.account());
    for (const trouble of about.troubles) nodes.push(make('p', 'bad', plain(trouble, 500)));
    if (about.live) nodes.push(make('p', 'faint', 'The capture is still being written: the page follows its end until you move.'));
    return nodes;
  }

  sum(key) {
    return this.page.about.captures.reduce((all, capture) => all + BigInt(capture[key]), 0n);
  }

  get threads() {
    return this.page.about.rows.filter((row) => row.id.startsWith('thread.')).length;
  }

  sentence() {
    const { about, pane } = this.page;
    const [first, ...others] = about.processes;
    const name = first ? plain(first.exe).split('/').pop() || `process ${first.pid}` : 'Nobody';
    const who = others.length > 0 ? `${name} and ${counted(others.length, 'other process', 'other processes')}` : name;
    const hosts = new Set(about.captures.map((capture) => plain(capture.host))).size;
    const where = hosts > 1 ? ` on ${grouped(hosts)} hosts` : '';
    if (about.from === null) return `${who}${where} has written no frame.`;
    return `${who}${where} wrote ${counted(pane.captured, 'frame', 'frames')} in ${duration(pane.to - pane.from + 1n)}, `
      + `with ${counted(this.threads, 'thread', 'threads')}.`;
  }

  /** Requests the time by name, and then the causes of the slowest intervals. */
  async ask(place, signal) {
    const { pane } = this.page;
    const { view } = pane.about;
    const show = (...nodes) => {
      place.replaceChildren(...nodes);
      pane.started = { view, nodes };
    };
    try {
      const time = await pane.api.panel({ id: 'time' }, signal);
      if (signal.aborted) return;
      if (time.rows.length === 0) {
        show(make('p', 'faint', 'No interval was captured: each frame is a line on the timeline.'));
        return;
      }
      const names = this.names(time);
      place.replaceChildren(names, make('p', 'faint', 'Reading what was slow …'));
      const slow = this.hasStates
        ? this.why((await pane.api.why({ from: String(pane.from), to: String(pane.to + 1n) }, signal)).slowest)
        : this.slowest((await pane.api.panel({ id: 'slowest' }, signal)).rows);
      if (!signal.aborted) show(names, ...slow);
    } catch (error) {
      if (error.name !== 'AbortError' && !signal.aborted) place.replaceChildren(make('p', 'bad', plain(error.message, 500)));
    }
  }

  /** The names with the most time, in the colours of their bars. */
  names({ columns, rows }) {
    const at = (name) => columns.findIndex((column) => column.name === name);
    const [name, count, total, longest] = ['name', 'count', 'total', 'longest'].map(at);
    const list = make('table');
    const head = make('tr');
    for (const [text, isNumber] of [['name'], ['count', true], ['total', true], ['longest', true]]) {
      const cell = make('th', isNumber ? 'number' : '');
      cell.scope = 'col';
      cell.append(term(text));
      head.append(cell);
    }
    list.append(head);
    for (const { cells } of rows.slice(0, NAMES)) {
      const line = make('tr');
      const first = make('td');
      first.append(swatch(cells[name]), this.button(plain(cells[name]), () => this.page.find(cells[name], 1)));
      line.append(first, make('td', 'number', grouped(cells[count])), make('td', 'number', duration(cells[total])), make('td', 'number', duration(cells[longest])));
      list.append(line);
    }
    return list;
  }

  /** Whether the captures have records of the kernel, which causes need. */
  get hasStates() {
    return this.page.about.rows.some((row) => row.id.startsWith('states.'));
  }

  why(all) {
    const items = all.slice(0, SLOW).map((slow) => {
      const whole = BigInt(slow.to) - BigInt(slow.from);
      const [most] = [...slow.parts].sort((one, other) => Number(BigInt(other.ns) - BigInt(one.ns)));
      const reason = most && `, of which ${Math.round((100 * Number(most.ns)) / (Number(whole) || 1))} % ${plain(most.cause)}`;
      return this.slow(slow.name, slow.key, [slow.from, slow.to], reason);
    });
    return this.slowList('What was slow, and why', items, ['why', 'Why'], 'has the slowest twenty, and all their parts.');
  }

  slowest(rows) {
    const items = rows.slice(0, SLOW).map(({ cells, frame, span }) => this.slow(cells[0], frame, span));
    return this.slowList('What was slow', items, ['slowest', 'The slowest'], 'lists twenty. Why they were slow, a capture says with --kernel sched.');
  }

  /** An interval with a link to the timeline. */
  slow(name, key, times, reason = '') {
    const { selection, navigation, pane } = this.page;
    const item = make('li');
    const go = () => (key ? selection.goTo(key, times) : navigation.showTimes(times.map((time) => pane.offset(time))));
    item.append(this.button(`${plain(name)} ${duration(BigInt(times[1]) - BigInt(times[0]))}`, go), reason);
    return item;
  }

  slowList(title, items, [id, text], rest) {
    if (items.length === 0) return [];
    const list = make('ul');
    list.append(...items);
    const more = make('p');
    more.append(this.tab(id, text), ` ${rest}`);
    return [make('h3', '', title), list, more];
  }

  missing() {
    const missing = this.sum('lost') + this.sum('dropped');
    const line = make('p');
    if (missing === 0n) line.append('No frame was lost or dropped. ');
    else line.append(make('span', 'bad', `${counted(missing, 'frame is', 'frames are')} missing`), '. They are hatched in the row of their thread. ');
    line.append(this.tab('account', 'What is missing'));
    return [make('h3', '', 'What is missing'), line];
  }

  next() {
    const list = make('ul');
    const look = make('li');
    look.append('Click a bar for its ', term('frame'), ', its causes and its effects. The height of a bar shows how ', term('busy'), ' it was.');
    const move = make('li', '', 'Turn the wheel to zoom, drag to move, drag on the axis to mark a stretch of time: answers are about it.');
    const keys = make('li');
    keys.append('All of it goes by keys, too: ', this.button('Keys (?)', () => this.page.showKeys()));
    list.append(look, move, keys);
    if (this.hasStates) {
      const states = make('li');
      states.append('States of threads: ');
      for (const [kind, text] of [['running', 'running'], ['runnable', 'waiting for a CPU'], ['blocked', 'blocked']]) {
        states.append(make('span', `swatch ${kind}`), `${text} `);
      }
      list.append(states);
    }
    return [make('h3', '', 'What to do now'), list];
  }

  account() {
    const { about, pane } = this.page;
    const list = make('table');
    const line = (name, ...value) => {
      const row = make('tr');
      const [head, cell] = [make('th'), make('td')];
      head.scope = 'row';
      head.append(name);
      cell.append(...value);
      row.append(head, cell);
      list.append(row);
    };
    const hosts = new Set(about.captures.map((capture) => plain(capture.host)));
    for (const process of about.processes.slice(0, 8)) {
      line('process', `${plain(process.exe)} (${process.pid})${hosts.size > 1 ? ` on ${plain(process.host)}` : ''}`);
    }
    if (about.processes.length > 8) line('', `and ${grouped(about.processes.length - 8)} more processes`);
    line(term('thread', 'threads'), grouped(this.threads));
    if (hosts.size > 1) line('hosts', grouped(hosts.size));
    line(term('frame', 'frames'), grouped(pane.captured));
    if (about.from !== null) {
      line('from', `${moment(about.from)} UTC`);
      line('for', duration(pane.to - pane.from + 1n));
    }
    line(term('lost'), make('span', this.sum('lost') > 0n ? 'bad' : '', grouped(this.sum('lost'))));
    line(term('dropped'), make('span', this.sum('dropped') > 0n ? 'bad' : '', grouped(this.sum('dropped'))));
    const error = Math.max(...about.captures.map((capture) => Number(capture.timeError)), 0);
    if (error > 0) line('times are exact to', duration(error));
    return list;
  }

  list(steps) {
    const list = make('ul');
    for (const [text, id, button] of steps) {
      const item = make('li');
      item.append(text, ' ', this.tab(id, button));
      list.append(item);
    }
    return list;
  }

  /** A button that opens another answer. */
  tab(id, text) {
    return this.button(text, () => this.page.panels.show(id));
  }

  button(text, act) {
    const node = make('button', 'link', text);
    node.type = 'button';
    node.addEventListener('click', act);
    return node;
  }
}

/** The colour of bars with this name. */
export function swatch(name) {
  const node = make('span', 'swatch');
  node.style.background = `rgb(${colour(name).join()})`;
  return node;
}
