// The exchange that is selected: what was said, what was sent, and how it differs from another.
import { html } from "htm/preact";
import { showing } from "./commands.js";
import { Difference } from "./difference.js";
import { Command, Long, Numbered, pretty, Problem, useLoaded } from "./parts.js";
import { Tabs } from "./tabs.js";
import { several, visible } from "./text.js";
import { VirtualList } from "./virtual.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./place.js").Place} Place */

const TABS = /** @type {[string, string][]} */ ([
  ["step", "conversation"],
  ["raw", "request and response"],
  ["diff", "difference"],
]);

/** @param {{store: Store, here: Place, onpart: (part: string) => void}} props */
export function ExchangePanel({ store, here, onpart }) {
  const { run, step, part } = here;
  const version = store.version(run, step);
  const { value, error } = useLoaded(`${run}/${step}`, () => store.exchange(run, step), version);
  return html`<section class="exchange" aria-label="exchange">
    <h2>exchange ${step}</h2>
    <${Tabs}
      label="what to show of the exchange"
      name="part"
      tabs=${TABS}
      chosen=${part === "history" ? "step" : part}
      onchoose=${onpart}
    />
    <div role="tabpanel" id="part-panel" class="pane" aria-labelledby=${`part-${part === "history" ? "step" : part}`}>
      ${error && html`<${Problem} error=${error} />`}
      ${value && part === "raw" && html`<${Raw} store=${store} here=${here} exchange=${value.exchange} />`}
      ${value && part === "diff" && html`<${Difference} store=${store} here=${here} />`}
      ${
        value &&
        (part === "step" || part === "history") &&
        html`<${Talk} store=${store} here=${here} placed=${value} onpart=${onpart} />`
      }
    </div>
  </section>`;
}

/**
 * The messages that are new at this exchange, or all that it sent, and its answer.
 * @param {{store: Store, here: Place, placed: import("./store.js").Placed,
 *   onpart: (part: string) => void}} props
 */
function Talk({ store, here, placed, onpart }) {
  const { run, step, part } = here;
  const { exchange, message } = placed;
  const whole = part === "history";
  const alone = store.report.runs[run].only !== null; // Then nothing tells what was said before.
  const { value, error } = useLoaded(
    `${run}/${step}/${part}`,
    () => (whole ? store.question(run, step) : Promise.resolve(exchange.messages)),
    store.version(run, step),
  );
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="quiet">unpacking…</p>`;
  const asked = whole ? value : value.filter((number) => number >= message);
  const folded = whole
    ? value.filter((number) => number < message).length
    : exchange.keep + value.length - asked.length;
  const shown = [...asked, ...exchange.answer];
  if (!shown.length && !folded) return html`<${Raw} store=${store} here=${here} exchange=${exchange} />`;
  return html`${
    folded > 0 &&
    html`<button class="more" onClick=${() => onpart(whole ? "step" : "history")}>
      ${whole ? "hide" : "show"} ${several(folded, "earlier message")}
    </button>`
  }
    <${VirtualList}
      key=${`${run}/${step}/${part}`}
      count=${shown.length}
      height=${90}
      current=${whole ? shown.findIndex((number) => number >= message) : -1}
      label="messages of the exchange"
      name="message-row-"
      row=${(/** @type {number} */ i) => html`<${Numbered}
        store=${store} run=${run} n=${step} number=${shown[i]}
        isNew=${i >= asked.length || (!alone && shown[i] >= message)}
      />`}
    />
    ${exchange.caller && html`<p class="quiet">sent from ${visible(exchange.caller)}</p>`}
    <${Command} command=${showing(store.report.runs, here)} />`;
}

/** @param {{store: Store, here: Place, exchange: import("./data.js").Exchange}} props */
function Raw({ store, here, exchange }) {
  const { run, step } = here;
  const version = store.version(run, step);
  const { value, error } = useLoaded(`${run}/${step}`, () => store.request(run, step), version);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="request and response">
    <h3>request</h3>
    <p><code>${visible(exchange.method)} ${visible(exchange.url)}</code></p>
    ${error && html`<${Problem} error=${error} />`}
    ${exchange.request.binary !== null && html`<p>${exchange.request.binary} bytes that are no text</p>`}
    ${exchange.request.binary === null && value && html`<${Long} key=${step} text=${pretty(value)} code />`}
    <h3>response ${exchange.status ?? "none"}</h3>
    ${
      exchange.response.binary === null
        ? html`<${Long} key=${step} text=${pretty(exchange.response.text)} code />`
        : html`<p>${exchange.response.binary} bytes that are no text</p>`
    }
    <details><summary>headers</summary>
      <${Headers} pairs=${exchange.request_headers} /><${Headers} pairs=${exchange.response_headers} />
    </details>
    ${
      exchange.settings &&
      html`<details><summary>settings and tools offered</summary>
      <${Long} text=${pretty(exchange.settings)} code /></details>`
    }
    ${exchange.caller && html`<p class="quiet">sent from ${visible(exchange.caller)}</p>`}
    <${Command} command=${showing(store.report.runs, here)} /></div>`;
}

/** @param {{pairs: [string, string][]}} props */
function Headers({ pairs }) {
  return html`<dl class="facts">${pairs.map(
    ([name, value]) => html`<dt>${visible(name)}</dt><dd>${visible(value)}</dd>`,
  )}</dl>`;
}
