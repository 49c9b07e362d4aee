// The lanes of a run side by side, and which exchange needed which.
import { html } from "htm/preact";
import { visible } from "./text.js";

/** @typedef {import("./data.js").Run} Run */
/** @typedef {import("./data.js").Index} Index */

const ROW = 28;
const WIDE = 118;

/** The lanes as columns, and which exchange needed which. @param {{run: Run, index: Index, base: number, step: number, onpick: (n: number) => void}} props */
export function Lanes({ run, index, base, step, onpick }) {
  const first = Math.max(0, Math.min(step - base - 40, index.kind.length - 200));
  const last = Math.min(index.kind.length, first + 200);
  const x = (/** @type {number} */ i) => 60 + index.lane[i] * WIDE;
  const y = (/** @type {number} */ i) => 34 + (i - first) * ROW;
  /** @type {{from: number, to: number, rule: string | null, kind: string}[]} */
  const edges = [];
  const before = new Map();
  for (let i = first; i < last; i++) {
    const lane = index.lane[i];
    if (before.has(lane)) edges.push({ from: before.get(lane), to: i, rule: null, kind: "lane" });
    before.set(lane, i);
  }
  for (const edge of index.edges) {
    const [from, to] = [edge.from - base, edge.to - base];
    if (from >= first && to < last) edges.push({ from, to, rule: edge.rule, kind: edge.rule ? "inferred" : "recorded" });
  }
  const width = 120 + run.lanes.length * WIDE;
  return html`<section class="scroll view" aria-label="lanes and dependencies" tabindex="0">
    <p class="quiet">
      Solid lines were recorded. Dashed lines were inferred, by the rule that they name.
      ${(first > 0 || last < index.kind.length) &&
      ` Exchanges ${base + first} to ${base + last - 1} of ${index.kind.length} are drawn: select another one to move.`}
    </p>
    <svg class="lanes" width=${width} height=${(last - first) * ROW + 50} role="group" aria-label="exchanges by lane">
      ${run.lanes.map((lane, i) => html`<text x=${60 + i * WIDE} y="12" text-anchor="middle">${visible(lane).slice(-16)}</text>`)}
      ${edges.map(
        (edge) => html`<path class=${edge.kind} d=${`M${x(edge.from)} ${y(edge.from)} C${x(edge.from)} ${y(edge.from) + ROW / 2} ${x(edge.to)} ${y(edge.to) - ROW / 2} ${x(edge.to)} ${y(edge.to)}`}>
          ${edge.rule && html`<title>${visible(edge.rule)}</title>`}</path>
          ${edge.rule && html`<text class="rule" text-anchor="middle" x=${0.3 * x(edge.from) + 0.7 * x(edge.to)} y=${(y(edge.from) + y(edge.to)) / 2 - 2}>${visible(edge.rule)}</text>`}`,
      )}
      ${Array.from({ length: last - first }, (_, k) => first + k).map(
        (i) => html`<g
          class=${`node ${index.kind[i]}${base + i === step ? " current" : ""}`}
          role="button" tabindex=${base + i === step ? 0 : -1}
          aria-label=${`exchange ${base + i}, ${visible(index.label[i])}`}
          onClick=${() => onpick(base + i)}
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => ["Enter", " "].includes(event.key) && onpick(base + i)}
        ><circle cx=${x(i)} cy=${y(i)} r="12" /><text x=${x(i)} y=${y(i) + 4} text-anchor="middle">${base + i}</text>
          <text x=${x(i) + 16} y=${y(i) + 4}>${visible(index.label[i]).slice(0, 13)}</text></g>`,
      )}
    </svg>
  </section>`;
}
