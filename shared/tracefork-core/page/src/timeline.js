// The exchanges of a run, one row each.
import { html } from "htm/preact";
import { duration, money, several, visible } from "./text.js";
import { VirtualList } from "./virtual.js";

/** @typedef {import("./data.js").Index} Index */
/** @typedef {import("./data.js").Run} Run */

/**
 * @param {{run: Run, index: Index, base: number, rows: number[], step: number,
 *   onpick: (n: number) => void}} props
 */
export function Timeline({ run, index, base, rows, step, onpick }) {
  const verdicts = new Map((run.blame?.ranking ?? []).map((part) => [part.exchange, part.verdict]));
  const hidden = index.kind.length - rows.length;
  return html`<${VirtualList}
      count=${rows.length}
      height=${50}
      current=${rows.indexOf(step - base)}
      label="timeline"
      name="row"
      onpick=${(/** @type {number} */ i) => onpick(base + rows[i])}
      row=${(/** @type {number} */ i) => html`<${Row}
        index=${index} i=${rows[i]} n=${base + rows[i]} lanes=${run.lanes}
        verdict=${verdicts.get(base + rows[i]) ?? ""}
      />`}
    />
    ${hidden > 0 && html`<p class="quiet foot">${several(hidden, "exchange")} not shown: filtered</p>`}
    ${
      run.only !== null &&
      html`<p class="quiet foot">The other exchanges are not in this page. All of them:
        <code>${visible(run.finding.next)}</code></p>`
    }
    ${run.only === null && base > 0 && html`<p class="quiet foot">exchanges 0 to ${base - 1} are those of the run it comes from</p>`}`;
}

/** @param {{index: Index, i: number, n: number, lanes: string[], verdict: string}} props */
function Row({ index, i, n, lanes, verdict }) {
  const error = index.errors[n];
  return html`<span class="n">${n}</span>
    <span class=${`kind ${index.kind[i]}`}>${visible(index.kind[i])}</span>
    <span class="label">${visible(index.label[i])}</span>
    ${verdict && html`<span class="tag blamed">${visible(verdict)}</span>`}
    ${(index.marks[n] ?? []).map((mark) => html`<span class="tag">${visible(mark)}</span>`)}
    ${lanes.length > 1 && html`<span class="lane">${visible(lanes[index.lane[i]] ?? "").slice(-18)}</span>`}
    <span class="figures">${duration(index.took[i])} ${money(index.cost[i])}</span>
    <span class=${error ? "gist bad" : "gist"}>${error ? `✗ ${visible(error)}` : visible(index.gist[i])}</span>`;
}
