// Pairs the rows of two sets by their names, because the numbers of processes and threads differ.

/** The name of a row without its numbers. */
function name(row) {
  if (row.kind === 'process') return row.label.split('/').pop();
  if (row.kind === 'thread') return /\((.*)\)$/.exec(row.label)?.[1] ?? '';
  return row.kind === 'depth' ? row.second : row.label;
}

/** Pairs rows by their names. Rows with equal names are paired in order. */
function byName(rows) {
  const seen = new Map();
  const found = new Map();
  for (const row of rows) {
    const key = `${row.kind} ${name(row)}`;
    const before = seen.get(key) ?? 0;
    seen.set(key, before + 1);
    found.set(`${key} ${before}`, row);
  }
  return found;
}

function below(rows) {
  const found = new Map();
  for (const row of rows) {
    const parent = row.parent ?? null;
    if (!found.has(parent)) found.set(parent, []);
    found.get(parent).push(row);
  }
  return found;
}

/** The label of two rows: both numbers, and the name once. */
function text([one, other]) {
  if (!other) return `${one.text} (only before)`;
  if (!one) return `${other.text} (only after)`;
  if (one.text === other.text) return one.text;
  if (name(one) !== name(other)) return `${one.text} · ${other.text}`;
  const numbers = /\d+/;
  const [first, second] = [one.text, other.text].map((words) => (one.kind === 'process' ? /\((\d+)\)/.exec(words)?.[1] : numbers.exec(words)?.[0]));
  return first && second ? one.text.replace(first, `${first} · ${second}`) : `${one.text} · ${other.text}`;
}

function joined(pair, parent) {
  const [one, other] = pair;
  const sum = (key) => String(BigInt(one?.[key] ?? 0) + BigInt(other?.[key] ?? 0));
  return { ...(one ?? other), id: one?.id ?? `second/${other.id}`, parent, ids: pair.map((row) => row?.id), text: text(pair),
    count: sum('count'), lost: sum('lost') };
}

/** Pairs the only process without a partner in each set, because a program may have another name. */
function rename(left, right) {
  const alone = (one, other) => [...one].filter(([key, row]) => row.kind === 'process' && !other.has(key));
  const [[first, ...more], [second, ...others]] = [alone(left, right), alone(right, left)];
  if (!first || !second || more.length > 0 || others.length > 0) return;
  right.delete(second[0]);
  right.set(first[0], second[1]);
}

/** The rows of both sets as one tree. */
export function paired(first, second) {
  const trees = [first, second].map(below);
  const all = [];
  const add = (parent, ids) => {
    const [left, right] = trees.map((tree, set) => byName(ids[set] === undefined ? [] : tree.get(ids[set]) ?? []));
    rename(left, right);
    for (const key of new Set([...left.keys(), ...right.keys()])) {
      const pair = [left.get(key), right.get(key)];
      const row = joined(pair, parent);
      all.push(row);
      add(row.id, pair.map((one) => one?.id));
    }
  };
  add(null, [null, null]);
  return all;
}
