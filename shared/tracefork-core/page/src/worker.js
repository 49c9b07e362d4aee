// The worker unpacks parts of the page, searches them and compares texts, so that the page stays
// quick. Each of these has a bound.
import { diffLines, diffWordsWithSpace } from "diff";

const LARGEST = 64 * 1024 * 1024;
/** Characters of two texts that are compared by words; larger ones are compared by lines. */
const WORDS = 400_000;
/** Milliseconds for each attempt. */
const PATIENCE = 1500;

/** @type {Map<string, string>} */
const packed = new Map();

/** @param {string} base64 */
async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  const chunks = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > LARGEST) {
      await reader.cancel();
      throw new Error(`a part is larger than ${LARGEST / 1048576} MiB`);
    }
    chunks.push(value);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return new TextDecoder().decode(whole);
}

/** @param {unknown} error */
function reason(error) {
  return String(error instanceof Error ? error.message : error);
}

let searching = 0;

/**
 * Look for a text in the messages and bodies of blocks, and report each exchange that has it.
 * @param {number} query @param {string} text @param {[number, string][]} blocks
 */
async function search(query, text, blocks) {
  searching = query;
  const wanted = text.toLowerCase();
  /** @type {string[]} */
  const failed = [];
  for (const [first, id] of blocks) {
    if (searching !== query) return;
    /** @type {number[]} */
    const hits = [];
    try {
      const block = JSON.parse(await unpack(packed.get(id) ?? ""));
      block.exchanges.forEach((/** @type {any} */ exchange, /** @type {number} */ i) => {
        const said = exchange.new.flatMap((/** @type {any} */ message) =>
          message.parts.map((/** @type {any} */ part) => `${part.name ?? ""} ${part.text}`),
        );
        const texts = [...said, exchange.request.text, exchange.response.text, exchange.url];
        if (texts.some((one) => one.toLowerCase().includes(wanted))) hits.push(first + i);
      });
    } catch (error) {
      failed.push(`the part from exchange ${first} on: ${reason(error)}`);
    }
    if (hits.length) postMessage({ query, hits });
  }
  postMessage({ query, done: true, parts: blocks.length, failed });
}

/**
 * Compare by words; by lines if that would take too long; else not at all.
 * @param {string} before @param {string} after
 */
function difference(before, after) {
  const timed = { timeout: PATIENCE };
  const small = before.length + after.length <= WORDS;
  const words = small ? diffWordsWithSpace(before, after, timed) : undefined;
  const found = words ?? diffLines(before, after, timed);
  const changes = (found ?? []).map(({ added, removed, value }) => [
    added ? "+" : removed ? "-" : "=",
    value,
  ]);
  return { by: words ? "words" : found ? "lines" : null, changes };
}

onmessage = async (event) => {
  const { kind, id, key, text, query, blocks, before, after } = event.data;
  if (kind === "keep") packed.set(key, text);
  else if (kind === "search") await search(query, text, blocks);
  else
    try {
      const value =
        kind === "unpack" ? await unpack(packed.get(key) ?? "") : difference(before, after);
      postMessage({ id, value });
    } catch (error) {
      postMessage({ id, error: reason(error) });
    }
};
