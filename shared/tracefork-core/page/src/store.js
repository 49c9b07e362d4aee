// The data of the page, unpacked when it is first needed.

/** @typedef {import("./data.js").Report} Report */
/** @typedef {import("./data.js").Run} Run */
/** @typedef {import("./data.js").Index} Index */
/** @typedef {import("./data.js").Block} Block */
/** @typedef {import("./data.js").Exchange} Exchange */
/** @typedef {import("./data.js").Message} Message */
/** @typedef {import("./data.js").Body} Body */

const KEPT = 24;

/** @type {string} */
// @ts-ignore: esbuild puts the worker's source here.
const source = WORKER_SOURCE;

/** Unpacks parts in a worker, and keeps those that were used last. */
export class Store {
  /** @param {Document} page */
  constructor(page) {
    const text = page.getElementById("report")?.textContent ?? "";
    /** @type {Report} */
    this.report = JSON.parse(text);
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    /** @type {Map<number, {resolve: (text: string) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    /** @type {Map<string, Promise<any>>} */
    this.parts = new Map();
    /** @type {Set<string>} */
    this.sent = new Set();
    this.count = 0;
    this.page = page;
    /** @type {((found: {query: number, hits?: number[], done?: boolean}) => void) | null} */
    this.onfound = null;
    this.worker.onmessage = ({ data }) => {
      if (data.query !== undefined) return this.onfound?.(data);
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error) waiting?.reject(new Error(data.error));
      else waiting?.resolve(data.text);
    };
  }

  /** @param {string} key */
  send(key) {
    if (this.sent.has(key)) return;
    this.sent.add(key);
    const element = this.page.getElementById(key);
    this.worker.postMessage({ kind: "keep", key, text: element?.textContent ?? "" });
    element?.remove(); // The worker has it: twice would cost memory.
  }

  /**
   * Return a part as data.
   * @param {string} key @returns {Promise<any>}
   */
  part(key) {
    const kept = this.parts.get(key);
    if (kept) {
      this.parts.delete(key);
      this.parts.set(key, kept);
      return kept;
    }
    this.send(key);
    const id = this.count++;
    const part = new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ kind: "unpack", id, key });
    }).then(JSON.parse);
    this.parts.set(key, part);
    for (const oldest of this.parts.keys()) {
      if (this.parts.size <= KEPT) break;
      this.parts.delete(oldest);
    }
    return part;
  }

  /** @param {number} run @returns {Promise<Index>} */
  index(run) {
    return this.part(this.report.runs[run].index);
  }

  /**
   * Return the run that holds an exchange: a branch shares the first ones with its parent.
   * @param {number} run @param {number} n
   */
  home(run, n) {
    let here = run;
    for (let parent = this.report.runs[here].parent; parent && n < parent.at; ) {
      here = parent.run;
      parent = this.report.runs[here].parent;
    }
    return here;
  }

  /** @param {number} run */
  first(run) {
    return this.report.runs[run].parent?.at ?? 0;
  }

  /**
   * @param {number} run @param {number} n
   * @returns {Promise<{exchange: Exchange, message: number}>}
   */
  async exchange(run, n) {
    const home = this.home(run, n);
    const { blocks } = this.report.runs[home];
    let at = blocks.length - 1;
    while (at > 0 && blocks[at][0] > n) at--;
    if (at < 0) throw new Error(`exchange ${n} is not in this page`);
    /** @type {Block} */
    const block = await this.part(blocks[at][1]);
    const place = n - blocks[at][0];
    const exchange = block.exchanges[place];
    if (!exchange) throw new Error(`exchange ${n} is not in this page`);
    let { message } = block;
    for (let i = 0; i < place; i++) message += block.exchanges[i].new.length;
    return { exchange, message };
  }

  /**
   * Return the numbers of the messages of a question, the history included.
   * @param {number} run @param {number} n @returns {Promise<number[]>}
   */
  async question(run, n) {
    /** @type {{keep: number, messages: number[]}[]} */
    const chain = [];
    for (let at = n; at >= 0; ) {
      const { exchange } = await this.exchange(run, at);
      chain.push(exchange);
      at = exchange.keep ? exchange.base : -1;
    }
    return chain.reduceRight(
      (/** @type {number[]} */ before, one) => [...before.slice(0, one.keep), ...one.messages],
      [],
    );
  }

  /**
   * Return messages by their numbers.
   * @param {number} run @param {number} n @param {number[]} numbers
   * @returns {Promise<Message[]>}
   */
  async messages(run, n, numbers) {
    const home = this.home(run, n);
    const { message } = await this.index(home);
    const base = this.first(home);
    return Promise.all(
      numbers.map(async (number) => {
        let low = 0;
        let high = message.length - 1;
        while (low < high) {
          const middle = (low + high + 1) >> 1;
          if (message[middle] <= number) low = middle;
          else high = middle - 1;
        }
        const found = await this.exchange(home, base + low);
        return found.exchange.new[number - found.message];
      }),
    );
  }

  /**
   * Return the whole text of a request.
   * @param {number} run @param {number} n @returns {Promise<string>}
   */
  async request(run, n) {
    /** @type {Body[]} */
    const chain = [];
    for (let at = n; at >= 0; ) {
      const { exchange } = await this.exchange(run, at);
      chain.push(exchange.request);
      at = exchange.request.base;
    }
    return chain.reduceRight((before, body) => {
      const tail = body.tail ? before.slice(before.length - body.tail) : "";
      return before.slice(0, body.head) + body.text + tail;
    }, "");
  }

  /** @param {number} run @param {number} query @param {string} text */
  search(run, query, text) {
    const { blocks } = this.report.runs[run];
    for (const [, key] of blocks) this.send(key);
    this.worker.postMessage({ kind: "search", query, text, blocks });
  }
}
