// The data of the page, unpacked when it is first needed.

/** @typedef {import("./data.js").Report} Report */
/** @typedef {import("./data.js").Run} Run */
/** @typedef {import("./data.js").Index} Index */
/** @typedef {import("./data.js").Block} Block */
/** @typedef {import("./data.js").Exchange} Exchange */
/** @typedef {import("./data.js").Message} Message */
/** @typedef {import("./data.js").Body} Body */
/** @typedef {{exchange: Exchange, message: number}} Placed The first new message has that number. */
/** @typedef {{by: "words" | "lines" | null, changes: [string, string][]}} Compared */
/** @typedef {{query: number, hits?: number[], done?: boolean, parts?: number, failed?: string[]}} Found */

const KEPT = 24;

/** @type {string} */
// @ts-ignore: esbuild puts the worker's source here.
const source = WORKER_SOURCE;

/**
 * Return the last place whose value is not above `wanted`.
 * @param {number} count @param {(i: number) => number} value @param {number} wanted
 */
export function lastUpTo(count, value, wanted) {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (value(middle) <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Unpacks parts in a worker, and keeps those that were used last. */
export class Store {
  /** @param {Document} page @param {Report} report */
  constructor(page, report) {
    this.report = report;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    /** @type {Map<string, Promise<any>>} */
    this.parts = new Map();
    /** The parts of `parts` that have arrived. @type {Map<string, any>} */
    this.arrived = new Map();
    /** @type {WeakMap<Block, number[]>} */
    this.numbers = new WeakMap();
    /** @type {Set<string>} */
    this.sent = new Set();
    this.count = 0;
    this.page = page;
    /** @type {((found: Found) => void) | null} */
    this.onfound = null;
    this.worker.onmessage = ({ data }) => {
      if (data.query !== undefined) return this.onfound?.(data);
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error) waiting?.reject(new Error(data.error));
      else waiting?.resolve(data.value);
    };
  }

  /**
   * Ask the worker.
   * @param {string} kind @param {object} words @returns {Promise<any>}
   */
  ask(kind, words) {
    const id = this.count++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ kind, id, ...words });
    });
  }

  /**
   * Return the packed text of a part.
   * @param {string} key @returns {Promise<string>}
   */
  async load(key) {
    const element = this.page.getElementById(key);
    element?.remove(); // The worker has it: twice would cost memory.
    return element?.textContent ?? "";
  }

  /**
   * Give a part to the worker.
   * @param {string} key
   */
  async send(key) {
    if (this.sent.has(key)) return;
    const text = await this.load(key);
    this.sent.add(key);
    this.worker.postMessage({ kind: "keep", key, text });
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
    const part = this.send(key)
      .then(() => this.ask("unpack", { key }))
      .then(JSON.parse);
    this.parts.set(key, part);
    part.then(
      (value) => this.parts.get(key) === part && this.arrived.set(key, value),
      () => this.parts.delete(key),
    );
    for (const oldest of this.parts.keys()) {
      if (this.parts.size <= KEPT) break;
      this.parts.delete(oldest);
      this.arrived.delete(oldest);
    }
    return part;
  }

  /** @param {number} run @returns {Promise<Index>} */
  index(run) {
    return this.part(this.report.runs[run].index);
  }

  /**
   * Return the index if it is unpacked.
   * @param {number} run @returns {Index | undefined}
   */
  indexed(run) {
    return this.arrived.get(this.report.runs[run].index);
  }

  /**
   * Call a function when the run has changed, which a finished one never does.
   * @param {() => void} _changed @returns {() => void} What ends that.
   */
  follow(_changed) {
    return () => {};
  }

  /**
   * Return what changes when the content of an exchange does.
   * @param {number} run @param {number} n
   */
  version(run, n) {
    return this.report.runs[this.home(run, n)].blocks.length ? this.block(run, n)[1] : "";
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
    return this.report.runs[run].only ?? this.report.runs[run].parent?.at ?? 0;
  }

  /**
   * Return the first exchange and the id of the block that holds an exchange.
   * @param {number} run @param {number} n @returns {[number, string]}
   */
  block(run, n) {
    const { blocks } = this.report.runs[this.home(run, n)];
    if (!blocks.length) throw new Error(`exchange ${n} is not in this page`);
    return blocks[lastUpTo(blocks.length, (i) => blocks[i][0], n)];
  }

  /**
   * @param {number} run @param {number} n
   * @returns {Promise<Placed>}
   */
  async exchange(run, n) {
    const [first, key] = this.block(run, n);
    return this.placed(await this.part(key), n - first, n);
  }

  /** @param {Block} block @param {number} at @param {number} n @returns {Placed} */
  placed(block, at, n) {
    const exchange = block.exchanges[at];
    if (!exchange) throw new Error(`exchange ${n} is not in this page`);
    let numbers = this.numbers.get(block);
    if (!numbers) {
      let { message } = block;
      numbers = block.exchanges.map((one) => {
        const first = message;
        message += one.new.length;
        // In the file they count from the first that is new here: equal numbers take no room.
        one.messages = one.messages.map((number) => number + first);
        one.answer = one.answer.map((number) => number + first);
        return first;
      });
      this.numbers.set(block, numbers);
    }
    return { exchange, message: numbers[at] };
  }

  /**
   * Return the numbers of the messages of a question, the history included.
   *
   * Each question is the start of the one before it, and what it adds. The walk goes back and takes
   * only what is still missing, so it costs as much as the question is long.
   * @param {number} run @param {number} n @returns {Promise<number[]>}
   */
  async question(run, n) {
    /** @type {number[]} */
    const reversed = [];
    let missing = Number.POSITIVE_INFINITY;
    for (let at = n; at >= 0 && missing > 0; ) {
      const { exchange } = await this.exchange(run, at);
      const added = Math.min(exchange.messages.length, missing - exchange.keep);
      for (let i = added - 1; i >= 0; i--) reversed.push(exchange.messages[i]);
      missing = Math.min(missing, exchange.keep);
      at = exchange.base;
    }
    return reversed.reverse();
  }

  /**
   * Return the exchange of a run at which a message was new.
   * @param {Index} index @param {number} home @param {number} number
   */
  speaker(index, home, number) {
    return this.first(home) + lastUpTo(index.message.length, (i) => index.message[i], number);
  }

  /**
   * Return a message of the run that holds exchange `n`.
   * @param {number} run @param {number} n @param {number} number @returns {Promise<Message>}
   */
  async message(run, n, number) {
    const home = this.home(run, n);
    const index = await this.index(home);
    const found = await this.exchange(home, this.speaker(index, home, number));
    return found.exchange.new[number - found.message];
  }

  /**
   * Return the same at once if it is unpacked; null if not.
   * @param {number} run @param {number} n @param {number} number @returns {Message | null}
   */
  peek(run, n, number) {
    const home = this.home(run, n);
    const index = this.indexed(home);
    if (!index) return null;
    const at = this.speaker(index, home, number);
    const [first, key] = this.block(home, at);
    const block = this.arrived.get(key);
    if (!block) return null;
    const found = this.placed(block, at - first, at);
    return found.exchange.new[number - found.message];
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

  /**
   * Compare two texts.
   * @param {string} before @param {string} after @returns {Promise<Compared>}
   */
  difference(before, after) {
    return this.ask("difference", { before, after });
  }

  /** @param {number} run @param {number} query @param {string} text */
  async search(run, query, text) {
    const { blocks } = this.report.runs[run];
    // A part that cannot be had is empty for the worker, which says so.
    await Promise.allSettled(blocks.map(([, key]) => this.send(key)));
    this.worker.postMessage({ kind: "search", query, text, blocks });
  }
}
