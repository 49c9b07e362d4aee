// Where the reader is: the run, the exchange, the view. The address holds it, so that a link opens it.
import { useEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("./data.js").Report} Report */
/**
 * `part` says what the panel of the exchange shows. The difference compares with exchange `other` of
 * run `otherRun`.
 * @typedef {{
 *   run: number, step: number, view: string, part: string, other: number, otherRun: number,
 * }} Place
 */

/** The views by their keys. */
export const VIEWS = {
  t: "timeline",
  c: "conversation",
  l: "lanes",
  $: "flame",
  b: "branches",
  a: "about",
};
const PARTS = ["step", "history", "raw", "diff"];

/**
 * Read the address. What it names wrongly is replaced, and `note` says so.
 * @param {Report} report @returns {{place: Place, note: string}}
 */
export function read({ runs, place }) {
  const words = new URLSearchParams(location.hash.slice(1) || place);
  const number = (/** @type {string} */ name, /** @type {number} */ most) =>
    Math.max(0, Math.min(Number.parseInt(words.get(name) ?? "0", 10) || 0, Math.max(0, most)));
  const run = number("run", runs.length - 1);
  const named = runs[run].finding.exchanges[0] ?? 0;
  const step = runs[run].only ?? (words.has("step") ? number("step", runs[run].exchanges - 1) : named);
  let { other, otherRun } = against(runs, run, step);
  if (words.has("with")) {
    otherRun = words.has("of") ? number("of", runs.length - 1) : run;
    other = number("with", runs[otherRun].exchanges - 1);
  }
  /** @type {string[]} */
  const wrong = [];
  const known = (/** @type {string} */ name, /** @type {string[]} */ values) => {
    const value = words.get(name) ?? values[0];
    if (values.includes(value)) return value;
    wrong.push(`There is no ${name} "${value}", so this is "${values[0]}".`);
    return values[0];
  };
  const view = known("view", Object.values(VIEWS));
  const part = known("part", PARTS);
  return { place: { run, step, view, part, other, otherRun }, note: wrong.join(" ") };
}

/**
 * Return what an exchange is compared with: the same place of the parent if it is a branch's own, or
 * else the exchange before.
 * @param {Report["runs"]} runs @param {number} run @param {number} step
 */
export function against(runs, run, step) {
  const { parent } = runs[run];
  if (parent && step >= parent.at && step < runs[parent.run].exchanges)
    return { other: step, otherRun: parent.run };
  return { other: Math.max(0, step - 1), otherRun: run };
}

/** @param {Place} place */
function address({ run, step, view, part, other, otherRun }) {
  const words = new URLSearchParams({ step: String(step), view, part });
  if (run) words.set("run", String(run));
  if (part === "diff") {
    words.set("with", String(other));
    if (otherRun !== run) words.set("of", String(otherRun));
  }
  return `#${words}`;
}

/**
 * Keep the place, the address and the history of the browser together.
 *
 * `go` makes an entry of the history, so that "back" returns. Walking makes one entry for the whole
 * walk. `now` is where the last key went: keys may come faster than the page is drawn.
 * @param {Report} report @param {(note: string) => void} say
 */
export function usePlace(report, say) {
  const [here, setHere] = useState(() => read(report).place);
  const now = useRef(here);
  const go = (/** @type {Partial<Place>} */ change, walking = false) => {
    const next = { ...now.current, ...change };
    now.current = next;
    const to = address(next);
    if (to !== location.hash) {
      if (walking && history.state?.walking) history.replaceState({ walking }, "", to);
      else history.pushState({ walking }, "", to);
    }
    setHere(next);
  };
  useEffect(() => {
    const moved = () => {
      const { place, note } = read(report);
      now.current = place;
      setHere(place);
      say(note);
    };
    moved();
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  return { here, now, go };
}
