// What led to a frame and what it led to, hop by hop.

/** A frame, as a key of a map. */
export function keyText(key) {
  return [key.capture, key.buffer, key.segment, key.ring, key.seqno].join('/');
}

/** Most frames of which edges are asked at once. */
const MOST = 64;

/** The edges around a frame, as far as they were asked for. */
export class EdgeWeb {
  constructor(key) {
    this.key = keyText(key);
    this.edges = new Map();
    /** Frames whose edges are known, and those at the rim. */
    this.known = new Set();
    this.rim = [key];
    this.isCut = false;
  }

  /** Asks for one hop more; returns how many edges that added. */
  async grow(api) {
    const asked = this.rim.slice(0, MOST);
    if (asked.length === 0) return 0;
    const answer = await api.edges({ frames: asked });
    const before = this.edges.size;
    this.isCut ||= answer.truncated || asked.length < this.rim.length;
    for (const key of asked) this.known.add(keyText(key));
    const rim = new Map();
    for (const edge of answer.edges) {
      this.edges.set(`${keyText(edge.cause.key)} ${keyText(edge.effect.key)} ${edge.relation}`, edge);
      for (const { key } of [edge.cause, edge.effect]) if (!this.known.has(keyText(key))) rim.set(keyText(key), key);
    }
    this.rim = [...rim.values()];
    return this.edges.size - before;
  }

  /** The edges that end at the frame in the middle. */
  get causes() { return [...this.edges.values()].filter((edge) => keyText(edge.effect.key) === this.key); }

  /** Its causes and then its effects: as they are listed, and numbered. */
  get listed() { return [...this.causes, ...this.effects]; }

  /** The end of an edge that is not the frame in the middle. */
  farEnd(edge) { return keyText(edge.cause.key) === this.key ? edge.effect : edge.cause; }

  /** The edges that begin there. */
  get effects() { return [...this.edges.values()].filter((edge) => keyText(edge.cause.key) === this.key); }
}
