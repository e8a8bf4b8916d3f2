// The causes and effects of a frame, hop by hop.

/** The key of a frame in a map. */
export function keyText(key) {
  return [key.capture, key.buffer, key.segment, key.ring, key.seqno].join('/');
}

/** The most frames of one request. */
const MOST = 64;

/** The edges around a frame that were requested so far. */
export class EdgeWeb {
  constructor(key) {
    this.key = keyText(key);
    this.edges = new Map();
    /** The frames with known edges, and the frames of the next hop. */
    this.known = new Set();
    this.rim = [key];
    this.isCut = false;
  }

  /** Requests another hop. Returns the number of new edges. */
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

  /** The edges that end at the central frame. */
  get causes() { return [...this.edges.values()].filter((edge) => keyText(edge.effect.key) === this.key); }

  /** The causes and then the effects of the central frame, in the order of their numbers. */
  get listed() { return [...this.causes, ...this.effects]; }

  /** The end of an edge that is not the central frame. */
  farEnd(edge) { return keyText(edge.cause.key) === this.key ? edge.effect : edge.cause; }

  /** The edges that begin at the central frame. */
  get effects() { return [...this.edges.values()].filter((edge) => keyText(edge.cause.key) === this.key); }
}
