// The branches over the run they come from, as film strips.
import { html } from "htm/preact";
import { several, visible } from "./text.js";

/** @typedef {import("./data.js").Run} Run */

const DRAWN = 200;
/** A longer sequence of equal cells is folded, and its ends stay. */
const FOLDED = 8;
/** @typedef {{n: number, word: string, more: number}} Cell `more` cells follow that are folded. */

/**
 * @param {Run} run @param {number} step The cell that must not be folded; -1 for none.
 * @returns {Cell[]}
 */
function strip(run, step) {
  const words = run.branch?.cells ?? [];
  const count = run.branch ? words.length : run.exchanges;
  /** @type {Cell[]} */
  const cells = [];
  for (let start = 0; start < count; ) {
    let end = start + 1;
    while (end < count && words[end] === words[start]) end++;
    const long = end - start > FOLDED;
    const kept = (/** @type {number} */ n) => n === start || n === end - 1 || Math.abs(n - step) < 2;
    for (let n = start; n < end; n++) {
      if (!long || kept(n)) cells.push({ n, word: words[n] ?? "", more: 0 });
      else cells[cells.length - 1].more++;
    }
    start = end;
  }
  return cells;
}

/** @param {{runs: Run[], run: number, step: number, onrun: (run: number, step: number) => void}} props */
export function Branches({ runs, run, step, onrun }) {
  const parents = new Set(runs.map((one) => one.parent?.run));
  const shown = runs
    .map((one, i) => ({ one, i }))
    .filter(({ one, i }) => one.branch || parents.has(i) || i === run);
  return html`<section class="scroll view" aria-label="branches" tabindex="0">
    ${shown.map(({ one, i }) => {
      const cells = strip(one, i === run ? step : -1);
      return html`<article key=${i} class="strip">
        <h3><button onClick=${() => onrun(i, one.branch?.at ?? 0)}>${visible(one.name)}</button>
          <small> ${one.branch ? visible(one.branch.words) : "the run itself"} · ${visible(one.outcome.words)}</small></h3>
        <ol class="film">
          ${cells.slice(0, DRAWN).map(
            ({ n, word, more }) => html`<li key=${n} class=${`cell-${word.toLowerCase()}`}>
              <button aria-current=${i === run && n === step ? "true" : null} onClick=${() => onrun(i, n)}>${n} ${visible(word)}</button>
              ${more > 0 && html`<small> … ${more.toLocaleString("en")} more …</small>`}</li>`,
          )}
        </ol>
        ${cells.length > DRAWN && html`<p class="quiet">${several(cells.length - DRAWN, "more cell")} not drawn</p>`}
        ${one.branch?.findings.map(
          (finding) => html`<details><summary>${visible(finding.kind)}: ${visible(finding.words)} ${" "}
              (exchange ${finding.before ?? "—"} → ${finding.after ?? "—"})</summary>
            ${finding.changes.map(
              (change) => html`<p><b>${visible(change.where)}</b></p>
                ${change.before !== null && html`<del class="said">${visible(change.before)}</del>`}
                ${change.after !== null && html`<ins class="said">${visible(change.after)}</ins>`}`,
            )}</details>`,
        )}
      </article>`;
    })}
    ${!shown.some(({ one }) => one.branch) && html`<p>This run has no branches. <code>tracefork fork</code> makes one.</p>`}
  </section>`;
}
