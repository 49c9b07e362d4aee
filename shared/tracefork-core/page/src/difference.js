// How one exchange differs from another: what was asked, and what came back.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { showing } from "./commands.js";
import { Command, Long, pretty, Problem, useLoaded } from "./parts.js";
import { several, visible } from "./text.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./store.js").Compared} Compared */
/** @typedef {import("./place.js").Place} Place */
/** @typedef {{name: string, before: string, after: string, compared: Compared}} Side */

/** Equal text that is longer is folded, and the ends of it stay. */
const FOLDED = 400;
const ENDS = 160;

/** @param {{store: Store, here: Place}} props */
export function Difference({ store, here }) {
  const { run, step, other, otherRun } = here;
  const { value, error } = useLoaded(`${run}/${step}/${otherRun}/${other}`, () =>
    compare(store, here),
  );
  const where = otherRun === run ? "" : ` of ${store.report.runs[otherRun].name}`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="difference">
    <p class="legend">This exchange, beside exchange ${other}${visible(where)}:
      <del>only there</del> <ins>only here</ins></p>
    ${error && html`<${Problem} error=${error} />`}
    ${!value && !error && html`<p class="quiet">comparing…</p>`}
    ${value && value.same > 0 && html`<p class="quiet">${several(value.same, "earlier message")} equal in both</p>`}
    ${value?.sides.map((side) => html`<h3>${side.name}</h3><${Changes} key=${`${step}/${other}/${side.name}`} side=${side} />`)}
    <${Command} command=${showing(store.report.runs, here)} />
  </div>`;
}

/** @param {{side: Side}} props */
function Changes({ side }) {
  const { by, changes } = side.compared;
  if (!side.before && !side.after) return html`<p class="quiet">nothing</p>`;
  if (side.before === side.after) return html`<p class="quiet">the same in both: ${several(side.after.length, "character")}</p>`;
  if (by === null)
    return html`<p>The texts are too large to compare: both are shown.</p>
      <del class="said"><${Long} text=${side.before} /></del>
      <ins class="said"><${Long} text=${side.after} /></ins>`;
  return html`${by === "lines" && html`<p class="quiet">The texts are large, so they are compared by lines.</p>`}
    <div class="said">
      ${changes.map(([kind, text], i) => {
        if (kind === "+") return html`<ins key=${i}>${visible(text)}</ins>`;
        if (kind === "-") return html`<del key=${i}>${visible(text)}</del>`;
        return html`<${Equal} key=${i} text=${text} />`;
      })}
    </div>`;
}

/** @param {{text: string}} props */
function Equal({ text }) {
  const [open, setOpen] = useState(false);
  if (open || text.length <= FOLDED) return html`<span>${visible(text)}</span>`;
  return html`<span>${visible(text.slice(0, ENDS))}</span>
    <button class="more" onClick=${() => setOpen(true)}>
      show ${several(text.length - 2 * ENDS, "equal character")}
    </button>
    <span>${visible(text.slice(-ENDS))}</span>`;
}

/**
 * Compare what two exchanges asked and what they got. Messages that both questions start with are
 * counted, not compared.
 * @param {Store} store @param {Place} here
 */
async function compare(store, { run, step, other, otherRun }) {
  const pair = /** @type {[number, number][]} */ ([[otherRun, other], [run, step]]);
  const placed = await Promise.all(pair.map(([one, n]) => store.exchange(one, n)));
  const numbers = await Promise.all(pair.map(([one, n]) => store.question(one, n)));
  let same = 0;
  // Numbers of messages mean the same only within a run.
  if (store.home(...pair[0]) === store.home(...pair[1]))
    while (same < numbers[0].length && numbers[0][same] === numbers[1][same]) same++;
  const texts = await Promise.all(
    pair.map(async ([one, n], i) => {
      const { exchange } = placed[i];
      const said = async (/** @type {number[]} */ some) =>
        (await Promise.all(some.map((number) => store.message(one, n, number)))).map(words).join("\n\n");
      if (numbers[i].length || exchange.answer.length)
        return [await said(numbers[i].slice(same)), await said(exchange.answer)];
      return [
        `${exchange.method} ${exchange.url}\n${pretty(await store.request(one, n))}`,
        `${exchange.status ?? "no response"}\n${pretty(exchange.response.text)}`,
      ];
    }),
  );
  const sides = await Promise.all(
    ["asked", "answered"].map(async (name, i) => {
      const [before, after] = [texts[0][i], texts[1][i]];
      return { name, before, after, compared: await store.difference(before, after) };
    }),
  );
  return { same, sides };
}

/** @param {import("./data.js").Message} message */
function words(message) {
  return message.parts
    .map((part) => `${[message.who, part.name].filter(Boolean).join(" ")}: ${part.text}`)
    .join("\n");
}
