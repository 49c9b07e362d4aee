// Where the time, the tokens or the money of a run went: steps as a flame graph, and as a table.
import { html } from "htm/preact";
import { useMemo, useState } from "preact/hooks";
import { duration, money, several, tokens, visible } from "./text.js";

/** @typedef {import("./data.js").Index} Index */
/** @typedef {"time" | "tokens" | "cost"} Measure */
/**
 * A bar covers exchanges `first` to `last`. `count` bars that are too narrow to draw are drawn as one.
 * @typedef {{
 *   name: string, kind: string, step: number, first: number, last: number, start: number,
 *   share: number, value: number, count: number,
 * }} Bar
 */

const MEASURES = /** @type {Measure[]} */ (["time", "tokens", "cost"]);
/** A share of the whole that is wide enough for a bar of its own. */
const NARROW = 1 / 120;
const LISTED = 20;

/**
 * The bars are for the eye and the mouse; the table says the same to everybody.
 * @param {{index: Index, base: number, step: number, onpick: (n: number) => void}} props
 */
export function Flame({ index, base, step, onpick }) {
  const [measure, setMeasure] = useState(/** @type {Measure} */ ("time"));
  const { levels, values, total } = useMemo(() => flame(index, measure), [index, measure]);
  const shown = (/** @type {number} */ value) =>
    measure === "time" ? duration(value) : measure === "cost" ? money(value) : tokens(value);
  const most = useMemo(
    () => values.map((_, i) => i).filter((i) => values[i]).sort((a, b) => values[b] - values[a]),
    [values],
  );
  const picked = (/** @type {any} */ event) => {
    const bar = event.target.closest("[data-n]");
    if (bar) onpick(base + Number(bar.dataset.n));
  };
  return html`<section class="scroll view" aria-label="flame graph" tabindex="0">
    <div role="group" aria-label="measure" class="measures">
      ${MEASURES.map(
        (one) => html`<button aria-pressed=${measure === one} onClick=${() => setMeasure(one)}>${one}</button>`,
      )}
      <span> ${shown(total)} in all</span>
    </div>
    ${!levels.length && html`<p>Nothing is known of the ${measure} of this run.</p>`}
    <div aria-hidden="true" class="flames" onClick=${picked}>
      ${levels.map(
        (level, depth) => html`<div class="flame" key=${depth}>
          ${level.map(
            (bar) => html`<div
              key=${`${bar.first}/${bar.step}`}
              title=${`${visible(bar.name)}: ${shown(bar.value)}`}
              class=${`bar ${bar.kind}${bar.first <= step - base && step - base <= bar.last ? " current" : ""}`}
              data-n=${bar.first}
              ref=${(/** @type {HTMLElement | null} */ element) => {
                element?.style.setProperty("left", `${bar.start * 100}%`);
                element?.style.setProperty("width", `${bar.share * 100}%`);
              }}
            >${visible(bar.name)}</div>`,
          )}
        </div>`,
      )}
    </div>
    ${
      most.length > 0 &&
      html`<table class="wide"><caption>the ${Math.min(LISTED, most.length)} largest of ${several(values.length, "exchange")}</caption>
      <thead><tr><th scope="col">exchange</th><th scope="col">${measure}</th><th scope="col">share</th></tr></thead>
      <tbody>${most.slice(0, LISTED).map(
        (i) => html`<tr key=${i}><td><button aria-current=${base + i === step ? "true" : null} onClick=${() => onpick(base + i)}>${base + i} ${visible(index.label[i])}</button></td>
          <td>${shown(values[i])}</td><td>${((values[i] / total) * 100).toFixed(1)} %</td></tr>`,
      )}</tbody></table>`
    }
  </section>`;
}

/**
 * @param {Index} index @param {Measure} measure
 * @returns {{levels: Bar[][], values: number[], total: number}}
 */
function flame(index, measure) {
  const known = (/** @type {number} */ value) => Math.max(0, value);
  const values = index.kind.map((_, i) => {
    if (measure === "time") return known(index.took[i]);
    if (measure === "cost") return known(index.cost[i]);
    return known(index.tokens_in[i]) + known(index.tokens_out[i]);
  });
  const total = values.reduce((sum, value) => sum + value, 0);
  /** @type {Bar[][]} */
  const levels = [];
  if (!total) return { levels, values, total };
  let at = 0;
  values.forEach((value, i) => {
    const share = value / total;
    if (!share) return;
    /** @type {number[]} */
    const path = [];
    for (let step = index.step[i]; step >= 0 && path.length < 32; step = index.steps[step].parent)
      path.unshift(step);
    const bar = { first: i, last: i, start: at, share, value, count: 1 };
    path.forEach((step, depth) => {
      const level = (levels[depth] ??= []);
      const before = level[level.length - 1];
      if (before?.step === step && before.last === i - 1) {
        before.share += share;
        before.value += value;
        before.last = i;
      } else level.push({ ...bar, name: index.steps[step].name, kind: "step", step });
    });
    (levels[path.length] ??= []).push({ ...bar, name: index.label[i], kind: index.kind[i], step: -1 });
    at += share;
  });
  return { levels: levels.map(drawable), values, total };
}

/** Draw neighbours that are too narrow as one bar that counts them. @param {Bar[]} level */
function drawable(level) {
  /** @type {Bar[]} */
  const drawn = [];
  for (const bar of level) {
    const before = drawn[drawn.length - 1];
    const near = before && bar.start - (before.start + before.share) < NARROW;
    if (bar.share >= NARROW || !near || before.share >= NARROW) drawn.push({ ...bar });
    else {
      before.count += bar.count;
      before.value += bar.value;
      before.share = bar.start + bar.share - before.start;
      before.last = bar.last;
      before.kind = "several";
      before.name = `${before.count.toLocaleString("en")} narrow bars`;
    }
  }
  return drawn;
}
