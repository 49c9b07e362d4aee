// The data of a run that may still be recorded: the server tells what is new, and packed parts are
// fetched when they are needed.
import { Store } from "./store.js";

/** @typedef {import("./data.js").Index} Index */
/** @typedef {import("./data.js").Run} Run */
/** @typedef {import("./data.js").Growth} Growth */
/** @typedef {{open: boolean, in_flight: number, left: number, quiet: number, at: number,
 *   problem: string | null, recording: number}} State */

const COLUMNS = /** @type {const} */ ([
  "kind",
  "label",
  "gist",
  "lane",
  "step",
  "started",
  "took",
  "tokens_in",
  "tokens_out",
  "cost",
  "message",
]);

/** @returns {Index} */
function empty() {
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, []]));
  return /** @type {Index} */ (
    /** @type {unknown} */ ({ ...columns, errors: {}, marks: {}, steps: [], edges: [] })
  );
}

/**
 * Add what is new to an index, and return it as a new object: so what depends on it is drawn again.
 * @param {Index} index @param {Growth} growth @param {number} base
 */
export function grown(index, growth, base) {
  const { from, index: more } = growth;
  if (!more) return index;
  for (const name of COLUMNS) {
    /** @type {any[]} */
    const column = index[name];
    column.length = from;
    for (const value of more[name]) column.push(value);
  }
  for (const name of /** @type {const} */ (["errors", "marks"])) {
    for (const n of Object.keys(index[name])) if (Number(n) >= base + from) delete index[name][n];
    Object.assign(index[name], more[name]);
  }
  for (const [i, step] of growth.steps) index.steps[i] = step;
  index.edges = [...index.edges.filter((edge) => edge.to < base + from), ...more.edges];
  return { ...index };
}

export class LiveStore extends Store {
  /** @param {Document} page @param {string} tape @param {string | null} other */
  constructor(page, tape, other) {
    super(page, { format: 1, tracefork: "", content: true, runs: [], title: tape, place: "" });
    this.tape = tape;
    /** The names of the runs' tapes. @type {string[]} */
    this.names = [];
    /** Tapes of the folder that are not on this page. @type {string[]} */
    this.others = [];
    /** @type {State[]} */
    this.states = [];
    /** @type {Index[]} */
    this.indices = [];
    /** Whether the server does not answer. */
    this.lost = false;
    /** @type {Set<() => void>} */
    this.followers = new Set();
    const beside = other ? `&with=${encodeURIComponent(other)}` : "";
    const events = new EventSource(`/api/run?tape=${encodeURIComponent(tape)}${beside}`);
    events.onopen = () => {
      this.lost = false;
      this.states = [];
      this.tell();
    };
    events.onerror = () => {
      this.lost = true;
      this.tell();
    };
    events.addEventListener("runs", ({ data }) => {
      ({ runs: this.names, others: this.others } = JSON.parse(data));
      this.tell();
    });
    events.addEventListener("compared", ({ data }) => {
      const { number, branch } = JSON.parse(data);
      this.report.runs[number] = { ...this.report.runs[number], branch };
      this.tell();
    });
    events.addEventListener("growth", ({ data }) => {
      const { number, growth } = JSON.parse(data);
      this.grow(number, growth);
      this.tell();
    });
  }

  /** What is said before there is a row. */
  words() {
    return this.lost ? "There is no such run, or the server has ended." : "reading…";
  }

  tell() {
    for (const changed of this.followers) changed();
  }

  /** @param {number} number @param {Growth} growth */
  grow(number, growth) {
    const before = this.states[number];
    this.states[number] = { ...growth, at: performance.now() };
    if (!growth.run) return;
    if (before?.recording !== growth.recording) this.indices[number] = empty();
    const base = growth.run.parent?.at ?? 0;
    this.indices[number] = grown(this.indices[number] ?? empty(), growth, base);
    const { runs } = this.report;
    // A run that cannot be read must not move those behind it.
    while (runs.length < number) runs.push({ ...growth.run, exchanges: 0, blocks: [], parent: null });
    runs[number] = growth.run;
  }

  /** @param {() => void} changed */
  follow(changed) {
    this.followers.add(changed);
    return () => this.followers.delete(changed);
  }

  /** @param {number} run */
  async index(run) {
    return this.indices[run] ?? empty();
  }

  /** @param {number} run */
  indexed(run) {
    return this.indices[run];
  }

  /**
   * Keys are those of a run's tape: the same key may name a part of each.
   * @param {number} run @param {number} n @returns {[number, string]}
   */
  block(run, n) {
    const [first, key] = super.block(run, n);
    return [first, `${this.home(run, n)}/${key}`];
  }

  /** @param {string} key */
  async load(key) {
    const [run, id] = key.split("/");
    const tape = encodeURIComponent(this.names[Number(run)]);
    const answer = await fetch(`/api/part?tape=${tape}&id=${encodeURIComponent(id)}`);
    if (!answer.ok) throw new Error(await answer.text());
    return answer.text();
  }

  /** @param {number} run @param {number} query @param {string} text */
  async search(run, query, text) {
    const blocks = this.report.runs[run].blocks.map(
      ([first, key]) => /** @type {[number, string]} */ ([first, `${run}/${key}`]),
    );
    await Promise.allSettled(blocks.map(([, key]) => this.send(key)));
    this.worker.postMessage({ kind: "search", query, text, blocks });
  }
}
