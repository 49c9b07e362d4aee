// The views of a whole run: its conversation, its time and cost, its lanes, its branches, its facts.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { Command, Said } from "./parts.js";
import { duration, money, several, tokens, visible } from "./text.js";
import { VirtualList } from "./virtual.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./data.js").Run} Run */
/** @typedef {import("./data.js").Index} Index */

/** The messages of the run, each once. @param {{store: Store, run: number, index: Index, step: number, onpick: (n: number) => void}} props */
export function Conversation({ store, run, index, step, onpick }) {
  const base = store.first(run);
  return html`<${VirtualList}
    count=${index.kind.length}
    height=${120}
    measured
    current=${step - base}
    label="conversation of the run"
    name="said"
    onpick=${(/** @type {number} */ i) => onpick(base + i)}
    row=${(/** @type {number} */ i) => html`<${Turn} store=${store} run=${run} index=${index} i=${i} />`}
  />`;
}

/** @param {{store: Store, run: number, index: Index, i: number}} props */
function Turn({ store, run, index, i }) {
  const n = store.first(run) + i;
  const [messages, setMessages] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    let here = true;
    store.exchange(run, n).then(({ exchange }) => here && setMessages(exchange.new), () => {});
    return () => {
      here = false;
    };
  }, [run, n]);
  return html`<div class="turn">
    <small>exchange ${n} · ${visible(index.label[i])}</small>
    ${messages.map(
      (message, k) => html`<${Said} key=${k} message=${message} number=${index.message[i] + k} isNew=${false} />`,
    )}
    ${!messages.length && html`<p class="quiet">${visible(index.gist[i])}</p>`}
  </div>`;
}

const MEASURES = /** @type {const} */ (["time", "tokens", "cost"]);

/** Steps as a flame graph by time, tokens or cost. @param {{index: Index, base: number, onpick: (n: number) => void}} props */
export function Flame({ index, base, onpick }) {
  const [measure, setMeasure] = useState(/** @type {"time" | "tokens" | "cost"} */ ("time"));
  const { levels, total } = flame(index, measure);
  const shown = measure === "time" ? duration(total) : measure === "cost" ? money(total) : tokens(total);
  return html`<section class="scroll" aria-label="flame graph" tabindex="0">
    <div role="group" aria-label="measure">
      ${MEASURES.map(
        (one) => html`<button aria-pressed=${measure === one} onClick=${() => setMeasure(one)}>${one}</button>`,
      )}
      <span> ${shown} in all</span>
    </div>
    ${levels.map(
      (level, depth) => html`<div class="flame" key=${depth}>
        ${level.slice(0, 300).map(
          (bar) => html`<button
            key=${bar.key}
            title=${visible(bar.name)}
            class=${bar.kind}
            ref=${(/** @type {HTMLElement | null} */ element) => {
              element?.style.setProperty("left", `${bar.start * 100}%`);
              element?.style.setProperty("width", `max(2px, ${bar.share * 100}%)`);
            }}
            onClick=${() => bar.exchange >= 0 && onpick(base + bar.exchange)}
          >${visible(bar.name)}</button>`,
        )}
        ${level.length > 300 && html`<p class="quiet">${several(level.length - 300, "more bar")} not drawn</p>`}
      </div>`,
    )}
    ${!levels.length && html`<p>Nothing is known of the ${measure} of this run.</p>`}
  </section>`;
}

/**
 * @param {Index} index @param {"time" | "tokens" | "cost"} measure
 */
function flame(index, measure) {
  const values = index.kind.map((_, i) =>
    Math.max(
      0,
      measure === "time" ? index.took[i] : measure === "cost" ? index.cost[i] : Math.max(0, index.tokens_in[i]) + Math.max(0, index.tokens_out[i]),
    ),
  );
  const total = values.reduce((sum, value) => sum + value, 0);
  /** @type {{key: string, name: string, kind: string, start: number, share: number, exchange: number}[][]} */
  const levels = [];
  if (!total) return { levels, total };
  let at = 0;
  values.forEach((value, i) => {
    /** @type {number[]} */
    const path = [];
    for (let step = index.step[i]; step >= 0 && path.length < 32; step = index.steps[step].parent) path.unshift(step);
    const share = value / total;
    path.forEach((step, depth) => {
      const level = (levels[depth] ??= []);
      const before = level[level.length - 1];
      const key = `s${step}`;
      if (before?.key.startsWith(`${key}.`)) before.share += share;
      else level.push({ key: `${key}.${i}`, name: index.steps[step].name, kind: "step", start: at, share, exchange: i });
    });
    const level = (levels[path.length] ??= []);
    level.push({ key: `e${i}`, name: index.label[i], kind: index.kind[i], start: at, share, exchange: i });
    at += share;
  });
  return { levels, total };
}

const ROW = 26;
const WIDE = 118;

/** The lanes as columns, and which exchange needed which. @param {{run: Run, index: Index, base: number, step: number, onpick: (n: number) => void}} props */
export function Lanes({ run, index, base, step, onpick }) {
  const first = Math.max(0, Math.min(step - base - 40, index.kind.length - 200));
  const last = Math.min(index.kind.length, first + 200);
  const x = (/** @type {number} */ i) => 60 + index.lane[i] * WIDE;
  const y = (/** @type {number} */ i) => 24 + (i - first) * ROW;
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
  return html`<section class="scroll" aria-label="lanes and dependencies" tabindex="0">
    <p class="quiet">
      Solid lines were recorded. Dashed lines were inferred, by the rule that they name.
      ${(first > 0 || last < index.kind.length) &&
      ` Exchanges ${base + first} to ${base + last - 1} of ${index.kind.length} are drawn: select another one to move.`}
    </p>
    <svg class="lanes" width=${width} height=${(last - first) * ROW + 40} role="group" aria-label="exchanges by lane">
      ${run.lanes.map((lane, i) => html`<text x=${60 + i * WIDE} y="12" text-anchor="middle">${visible(lane).slice(-16)}</text>`)}
      ${edges.map(
        (edge) => html`<path class=${edge.kind} d=${`M${x(edge.from)} ${y(edge.from)} C${x(edge.from)} ${y(edge.from) + ROW / 2} ${x(edge.to)} ${y(edge.to) - ROW / 2} ${x(edge.to)} ${y(edge.to)}`}>
          ${edge.rule && html`<title>${edge.rule}</title>`}</path>
          ${edge.rule && html`<text class="rule" x=${(x(edge.from) + x(edge.to)) / 2} y=${(y(edge.from) + y(edge.to)) / 2}>${edge.rule}</text>`}`,
      )}
      ${Array.from({ length: last - first }, (_, k) => first + k).map(
        (i) => html`<g
          class=${`node ${index.kind[i]}${base + i === step ? " current" : ""}`}
          role="button" tabindex=${base + i === step ? 0 : -1}
          aria-label=${`exchange ${base + i}, ${visible(index.label[i])}`}
          onClick=${() => onpick(base + i)}
        ><circle cx=${x(i)} cy=${y(i)} r="8" /><text x=${x(i)} y=${y(i) + 4} text-anchor="middle">${base + i}</text>
          <text x=${x(i) + 12} y=${y(i) + 4}>${visible(index.label[i]).slice(0, 13)}</text></g>`,
      )}
    </svg>
  </section>`;
}

/** The branches over the run they come from. @param {{runs: Run[], run: number, step: number, onrun: (run: number, step: number) => void}} props */
export function Branches({ runs, run, step, onrun }) {
  const parents = new Set(runs.map((one) => one.parent?.run));
  const shown = runs
    .map((one, i) => ({ one, i }))
    .filter(({ one, i }) => one.branch || parents.has(i) || i === run);
  return html`<section class="scroll" aria-label="branches" tabindex="0">
    ${shown.map(
      ({ one, i }) => html`<article key=${i} class="strip">
        <h3><button onClick=${() => onrun(i, one.branch?.at ?? 0)}>${visible(one.name)}</button>
          <small> ${one.branch ? visible(one.branch.words) : "the run itself"} · ${visible(one.outcome.words)}</small></h3>
        <ol class="film">
          ${(one.branch?.cells ?? Array(Math.min(one.exchanges, 200)).fill("RUN")).slice(0, 200).map(
            (cell, n) => html`<li key=${n} class=${String(cell).toLowerCase()}>
              <button aria-current=${i === run && n === step} onClick=${() => onrun(i, n)}>${n} ${cell === "RUN" ? "" : cell}</button></li>`,
          )}
        </ol>
        ${one.exchanges > 200 && html`<p class="quiet">${several(one.exchanges - 200, "more exchange")} not drawn</p>`}
        ${one.branch?.findings.map(
          (finding) => html`<details><summary>${finding.kind}: ${visible(finding.words)} ${" "}
              (exchange ${finding.before ?? "—"} → ${finding.after ?? "—"})</summary>
            ${finding.changes.map(
              (change) => html`<p><b>${visible(change.where)}</b></p>
                ${change.before !== null && html`<del class="said">${visible(change.before)}</del>`}
                ${change.after !== null && html`<ins class="said">${visible(change.after)}</ins>`}`,
            )}</details>`,
        )}
      </article>`,
    )}
    ${!shown.some(({ one }) => one.branch) && html`<p>This run has no branches. <code>tracefork fork</code> makes one.</p>`}
  </section>`;
}

/** What is known of the recording. @param {{run: Run}} props */
export function About({ run }) {
  const lists = /** @type {[string, string[]][]} */ ([
    ["captured", run.coverage],
    ["masked", run.masked],
    ["limits of this run", run.limits],
  ]);
  return html`<section class="scroll" aria-label="about this run" tabindex="0">
    ${lists.map(
      ([name, lines]) => html`<h3>${name}</h3>${lines.length ? html`<ul>${lines.map((line) => html`<li>${visible(line)}</li>`)}</ul>` : html`<p class="quiet">nothing</p>`}`,
    )}
    <h3>checkpoints</h3>
    ${run.checkpoints.length ? run.checkpoints.slice(0, 100).map((one) => html`<p>before exchange ${one.exchange}: ${visible(one.words)}</p><${Command} command=${one.command} />`) : html`<p class="quiet">none</p>`}
    ${run.checkpoints.length > 100 && html`<p class="quiet">${several(run.checkpoints.length - 100, "more checkpoint")}: tracefork show --checkpoints</p>`}
    <h3>recording</h3>
    <dl class="facts">${run.facts.map(([name, value]) => html`<dt>${visible(name)}</dt><dd>${visible(value)}</dd>`)}</dl>
  </section>`;
}
