// What was said in the whole run, each message once.
import { html } from "htm/preact";
import { useEffect, useMemo } from "preact/hooks";
import { Numbered, Problem, useLoaded } from "./parts.js";
import { lastUpTo } from "./store.js";
import { several, visible } from "./text.js";
import { VirtualList } from "./virtual.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./data.js").Index} Index */

/** The parts of a run that are unpacked at once; the others when they are scrolled to. */
const READY = 12;

/**
 * A row is one message, however many of them an exchange sends. An exchange without a new one has a
 * row, too.
 * @param {{store: Store, run: number, index: Index, step: number, onpick: (n: number) => void}} props
 */
export function Conversation({ store, run, index, step, onpick }) {
  const base = store.first(run);
  const count = index.kind.length;
  const { value: end, error } = useLoaded(`${run}/${count}`, async () => {
    if (!count) return 0;
    const { exchange, message } = await store.exchange(run, base + count - 1);
    return message + exchange.new.length;
  });
  // A print cannot wait for the worker: the first parts are unpacked before you print.
  useEffect(() => {
    for (const [, key] of store.report.runs[run].blocks.slice(0, READY)) store.part(key).catch(() => {});
  }, [run]);
  const starts = useMemo(() => {
    let row = 0;
    return index.message.map((first, i) => {
      row += i ? Math.max(1, first - index.message[i - 1]) : 0;
      return row;
    });
  }, [index]);
  if (error) return html`<${Problem} error=${error} />`;
  if (end === null) return html`<p class="quiet">unpacking…</p>`;
  const rows = count ? starts[count - 1] + Math.max(1, end - index.message[count - 1]) : 0;
  const row = (/** @type {number} */ at) => {
    const i = lastUpTo(count, (k) => starts[k], at);
    const number = index.message[i] + at - starts[i];
    const last = i + 1 < count ? index.message[i + 1] : end;
    const n = base + i;
    return html`<div class=${n === step ? "turn chosen" : "turn"}>
      ${
        at === starts[i] &&
        html`<button class="speaker" aria-current=${n === step ? "true" : null} onClick=${() => onpick(n)}>
          exchange ${n} · ${visible(index.label[i])}
          ${last - number > 1 && ` · ${several(last - number, "new message")}`}
        </button>`
      }
      ${
        number < last
          ? html`<${Numbered} store=${store} run=${run} n=${n} number=${number} isNew=${false} />`
          : html`<p class="quiet">${visible(index.errors[n] ?? index.gist[i])}</p>`
      }
    </div>`;
  };
  return html`<${VirtualList}
    count=${rows}
    height=${100}
    current=${step >= base ? (starts[step - base] ?? -1) : -1}
    label="conversation of the run"
    name="said"
    row=${row}
  />`;
}
