// The top of the page: how the run ended, what is to blame and how sure that is, and the totals.
import { html } from "htm/preact";
import { duration, several, tokens, visible } from "./text.js";

/** @typedef {import("./data.js").Report} Report */

const END_CLASSES = { "✓": "good", "✗": "bad", "?": "quiet" };

/**
 * @param {{report: Report, chosen: number, onrun: (run: number) => void, onhelp: () => void}} props
 */
export function Finding({ report, chosen, onrun, onhelp }) {
  const run = report.runs[chosen];
  const { finding, totals, outcome } = run;
  const mark = outcome.ok === null ? "?" : outcome.ok ? "✓" : "✗";
  const pick = (/** @type {any} */ event) => onrun(Number(event.target.value));
  return html`<header class="top">
    <p class="title"><b>${visible(report.title)}</b>
      ${
        report.runs.length > 1 &&
        html`<label>run <select value=${chosen} onChange=${pick}>
          ${report.runs.map(
            (one, i) => html`<option value=${i} selected=${i === chosen}>
              ${visible(one.name)} · ${visible(one.outcome.words)}</option>`,
          )}
        </select></label>`
      }
      <span class=${END_CLASSES[mark]}>${mark} ${visible(outcome.words)}</span>
      <span class="grow"></span>
      <button onClick=${onhelp}>keys</button></p>
    <h1>${visible(finding.line)}</h1>
    <p>${finding.sure && html`<span class="tag">${visible(finding.sure)}</span> `}${visible(finding.more)}</p>
    <p class="quiet">${run.only === null ? "" : "1 of "}${several(run.exchanges, "exchange")} · ${totals.model_calls} model, ${totals.tool_calls} tool, ${totals.http} HTTP
      ${totals.tokens_in !== null && ` · ${tokens(totals.tokens_in)} → ${tokens(totals.tokens_out ?? 0)} tokens`}
      ${totals.cost && ` · ${visible(totals.cost)}`} · ${duration(run.took)} · ${several(run.lanes.length, "lane")}</p>
  </header>`;
}
