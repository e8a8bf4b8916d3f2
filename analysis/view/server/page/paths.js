// The paths from one point to another: their stages, and the slowest paths with links into the timeline.

import { paths } from './links.js';
import { command, table } from './tables.js';
import { duration, grouped, plain } from './text.js';
import { make } from './elements.js';

/** The panel with the fields of two points. */
export class Paths {
  constructor(page) {
    this.page = page;
    /** The names of the chosen points. */
    this.from = undefined;
    this.to = undefined;
  }

  async nodes(signal) {
    const { pane } = this.page;
    const points = await pane.api.points(signal);
    const title = make('h2', '', 'Paths');
    if (points.length === 0) return [title, make('p', 'faint', 'There are no points: frames with hashes, spans or chains have them.')];
    if (!points.includes(this.from)) [this.from] = points;
    if (!points.includes(this.to)) this.to = points.at(-1);
    const form = make('form', 'paths');
    const choice = (words, which) => {
      const label = make('label', '', words);
      const select = make('select');
      for (const point of points) {
        const option = make('option', '', plain(point));
        option.value = point;
        option.selected = point === this[which];
        select.append(option);
      }
      select.addEventListener('change', () => { this[which] = select.value; });
      label.append(' ', select);
      return label;
    };
    const place = make('div');
    form.append(choice('from', 'from'), choice('to', 'to'), make('button', '', 'Show'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.answer(place);
    });
    return [title, make('p', 'faint', 'What leads from one point to another, of everything.'), form, place];
  }

  async answer(place) {
    const { page, from, to } = this;
    place.replaceChildren(make('p', 'faint', 'Reading …'));
    try {
      const answer = await page.pane.api.paths({ from, to });
      place.replaceChildren(...this.shown(answer), command(`ppt graph ${paths(page)} --from '${plain(from)}' --to '${plain(to)}'`));
    } catch (error) {
      place.replaceChildren(make('p', 'bad', plain(error.message, 2000)));
    }
  }

  shown({ ends, reached, stages, slowest }) {
    const nodes = [make('p', '', `Something leads to ${grouped(reached)} of ${grouped(ends)}.`)];
    if (slowest.length === 0) return nodes;
    const heads = (all) => all.map(([name, content]) => ({ name, content }));
    const steps = stages.map((stage) => ({ cells: [plain(stage.stage), stage.place, stage.count, stage.time, `${(100 * stage.share).toFixed(1)} %`] }));
    nodes.push(make('h3', '', 'What they consist of'),
      table(heads([['step', 'text'], ['through', 'text'], ['count', 'count'], ['total', 'duration'], ['share', 'share']]), steps));
    const hops = make('div');
    const ways = slowest.map((way) => ({
      cells: [duration(way.latency), String(way.hops.length), way.ambiguous ? 'possible' : 'certain'],
      go: () => {
        this.page.showWay(way.hops);
        hops.replaceChildren(make('h3', '', `Where ${duration(way.latency)} went`), this.hops(way.hops));
      },
    }));
    nodes.push(make('h3', '', 'The slowest'), table(heads([['took', 'text'], ['steps', 'count'], ['certainty', 'text']]), ways), hops);
    return nodes;
  }

  hops(hops) {
    const rows = hops.map((hop) => ({
      cells: [`${plain(hop.from)} → ${plain(hop.to)}`, hop.place, String(BigInt(hop.end) - BigInt(hop.begin))],
      go: () => this.page.navigation.showTimes([hop.begin, hop.end].map((time) => this.page.pane.offset(time))),
    }));
    return table([['step', 'text'], ['through', 'text'], ['took', 'duration']].map(([name, content]) => ({ name, content })), rows);
  }
}
