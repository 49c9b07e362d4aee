// The exchange that is selected: what was said, what was sent, and how it differs from another.
import { diffWordsWithSpace } from "diff";
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { Command, Long, pretty, Said } from "./parts.js";
import { several, visible } from "./text.js";

/** @typedef {import("./store.js").Store} Store */

/** @param {string} key @param {() => Promise<any>} load */
function useLoaded(key, load) {
  const [found, setFound] = useState({ key: "", value: /** @type {any} */ (null), error: "" });
  useEffect(() => {
    let here = true;
    load().then(
      (value) => here && setFound({ key, value, error: "" }),
      (error) => here && setFound({ key, value: null, error: String(error.message ?? error) }),
    );
    return () => {
      here = false;
    };
  }, [key]);
  return found.key === key ? found : { key, value: null, error: "" };
}

/**
 * @param {{store: Store, run: number, step: number, view: string, other: number,
 *   onview: (view: string) => void}} props
 */
export function ExchangePanel({ store, run, step, view, other, onview }) {
  const key = `${run}/${step}/${view}/${other}`;
  const { value, error } = useLoaded(key, async () => {
    const { exchange, message } = await store.exchange(run, step);
    if (view === "raw") return { exchange, request: await store.request(run, step) };
    const numbers = await store.question(run, step);
    if (view === "diff") {
      const before = await store.question(run, other);
      const pair = [before, numbers].map(async (side, i) =>
        (await store.messages(run, i ? step : other, side)).map(words).join("\n\n"),
      );
      return { exchange, pair: await Promise.all(pair) };
    }
    const fresh = numbers.filter((number) => number >= message);
    const folded = numbers.length - fresh.length;
    const shown = view === "history" ? numbers : fresh;
    return {
      exchange,
      folded,
      shown,
      fresh: message,
      messages: await store.messages(run, step, shown),
      answers: await store.messages(run, step, exchange.answer),
    };
  });
  const tabs = [
    ["step", "conversation"],
    ["raw", "request and response"],
    ["diff", "difference"],
  ];
  return html`<section class="exchange" aria-label="exchange">
    <h2>exchange ${step}</h2>
    <div role="tablist" aria-label="what to show of the exchange">
      ${tabs.map(
        ([name, label]) => html`<button
          role="tab"
          aria-selected=${view === name || (name === "step" && view === "history")}
          onClick=${() => onview(name)}
        >${label}</button>`,
      )}
    </div>
    <div role="tabpanel" tabindex="0" class="scroll">
      ${error && html`<p class="problem">This part cannot be read: ${visible(error)}</p>`}
      ${value && html`<${Content} value=${value} view=${view} other=${other} onview=${onview} />`}
    </div>
  </section>`;
}

/** @param {import("./data.js").Message} message */
function words(message) {
  return message.parts.map((part) => `${message.who}: ${part.name ?? ""} ${part.text}`).join("\n");
}

/** @param {{value: any, view: string, other: number, onview: (view: string) => void}} props */
function Content({ value, view, other, onview }) {
  const { exchange } = value;
  if (view === "raw" && value.request !== undefined) return html`<${Raw} ...${value} />`;
  if (view === "diff" && value.pair) {
    const [before, after] = value.pair;
    return html`<p>What this exchange asked, beside exchange ${other}:</p>
      <div class="said">
        ${diffWordsWithSpace(before, after).map((change) => {
          if (change.added) return html`<ins>${visible(change.value)}</ins>`;
          if (change.removed) return html`<del>${visible(change.value)}</del>`;
          const text = change.value;
          const cut = text.length > 400 ? `${text.slice(0, 160)} … ${text.slice(-160)}` : text;
          return html`<span>${visible(cut)}</span>`;
        })}
      </div>`;
  }
  if (!value.messages) return null;
  return html`
    ${
      value.folded > 0 &&
      html`<button class="more" onClick=${() => onview(view === "history" ? "step" : "history")}>
        ${view === "history" ? "hide" : "show"} ${several(value.folded, "earlier message")}
      </button>`
    }
    ${value.messages.map(
      (/** @type {any} */ message, /** @type {number} */ i) => html`<${Said}
        key=${value.shown[i]}
        message=${message}
        number=${value.shown[i]}
        isNew=${value.shown[i] >= value.fresh}
      />`,
    )}
    ${value.answers.map(
      (/** @type {any} */ message, /** @type {number} */ i) => html`<${Said}
        key=${`a${i}`}
        message=${message}
        number=${exchange.answer[i]}
        isNew=${true}
      />`,
    )}
    ${!value.messages.length && !value.answers.length && html`<${Raw} exchange=${exchange} />`}
    ${exchange.caller && html`<p class="quiet">sent from ${visible(exchange.caller)}</p>`}
    <${Command} command=${exchange.command} />`;
}

/** @param {{exchange: import("./data.js").Exchange, request?: string}} props */
function Raw({ exchange, request }) {
  const asked = request ?? exchange.request.text;
  return html`<h3>request</h3>
    <p><code>${exchange.method} ${visible(exchange.url)}</code></p>
    ${exchange.request.binary === null
      ? html`<${Long} text=${pretty(asked)} code />`
      : html`<p>${exchange.request.binary} bytes that are no text</p>`}
    <h3>response ${exchange.status ?? "none"}</h3>
    ${exchange.response.binary === null
      ? html`<${Long} text=${pretty(exchange.response.text)} code />`
      : html`<p>${exchange.response.binary} bytes that are no text</p>`}
    <details><summary>headers</summary>
      <${Headers} pairs=${exchange.request_headers} /><${Headers} pairs=${exchange.response_headers} />
    </details>
    ${exchange.settings && html`<details><summary>settings and tools offered</summary>
      <${Long} text=${pretty(exchange.settings)} code /></details>`}`;
}

/** @param {{pairs: [string, string][]}} props */
function Headers({ pairs }) {
  return html`<dl class="facts">${pairs.map(
    ([name, value]) => html`<dt>${visible(name)}</dt><dd>${visible(value)}</dd>`,
  )}</dl>`;
}
