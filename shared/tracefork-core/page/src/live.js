// The live view: the list of a folder, or a run whose rows come in while it is recorded.
import { html, render } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { App } from "./app.js";
import { FolderList } from "./folder_list.js";
import { LiveStore } from "./live_store.js";
import { Jobs } from "./running.js";
import { duration, several, visible } from "./text.js";

/** @typedef {{folder: string, allow_run: boolean}} Served */

/** Milliseconds without news, after which the page says so. */
const QUIET = 10_000;

/** @param {{tape: string, other: string | null, served: Served}} props */
function Run({ tape, other, served }) {
  const [store] = useState(() => new LiveStore(document, tape, other));
  const [, redraw] = useState(0);
  useEffect(() => {
    const changed = () => redraw((n) => n + 1);
    const leave = store.follow(changed);
    changed(); // All may have been told before.
    return leave;
  }, []);
  const state = store.states[0];
  if (store.report.runs[0]) {
    const head = (/** @type {any} */ props) => html`<${Status} ...${props} served=${served} />`;
    return html`<${App} store=${store} head=${useHead(head)} />`;
  }
  return html`<header class="top"><p><a href="/">all runs</a></p>
    <h1>${visible(tape)}</h1>
    <p class=${state?.problem ? "problem" : "quiet"}>${state?.problem ? visible(state.problem) : store.words()}</p></header>`;
}

/** Keep one component for all drawings: another one would lose what it holds. @param {any} head */
function useHead(head) {
  return useState(() => head)[0];
}

/**
 * How far the recording is, above the finding.
 * @param {{store: LiveStore, here: import("./place.js").Place, served: Served,
 *   go: (change: object, walking?: boolean) => void}} props
 */
function Status({ store, here, go, served }) {
  const [following, setFollowing] = useState(false);
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const state = store.states[here.run];
  const last = store.report.runs[here.run].exchanges - 1;
  useEffect(() => {
    if (following && here.step !== last && last >= 0) go({ step: last, part: "step" }, true);
  }, [following, last, here.step]);
  const quiet = state ? state.quiet + performance.now() - state.at : 0;
  const words = [];
  if (store.lost) words.push("the server does not answer; trying again");
  if (state?.problem) words.push(visible(state.problem));
  if (state?.open) {
    words.push(
      quiet < QUIET
        ? "recording"
        : `not ended, and nothing new for ${duration(quiet)}: it waits, or was killed`,
    );
    if (state.in_flight) words.push(`${several(state.in_flight, "request")} without an end yet`);
  }
  if (state?.left) words.push(`${several(state.left, "exchange")} still to be read`);
  const compare = (/** @type {any} */ event) => {
    const words = new URLSearchParams({ tape: store.tape, with: event.target.value });
    location.assign(`/run?${words}#view=branches`);
  };
  return html`<div class="live">
    <a href="/">all runs</a>
    <span role="status" class=${store.lost || state?.problem ? "problem" : ""}>${words.join(" · ")}</span>
    <span class="grow"></span>
    ${
      state?.open &&
      html`<label><input type="checkbox" checked=${following}
        onChange=${(/** @type {any} */ event) => setFollowing(event.target.checked)} /> follow</label>`
    }
    ${
      store.others.length > 0 &&
      html`<label>compare with <select onChange=${compare}>
        <option value="">…</option>
        ${store.others.map((name) => html`<option value=${name}>${visible(name)}</option>`)}
      </select></label>`
    }
    ${served.allow_run && html`<${Jobs} tape=${store.names[here.run]} step=${here.step} />`}
  </div>`;
}

/** @param {HTMLElement} main */
export function mountLive(main) {
  /** @type {Served} */
  const served = JSON.parse(document.getElementById("view")?.textContent ?? "{}");
  const words = new URLSearchParams(location.search);
  const tape = words.get("tape");
  main.replaceChildren();
  const page = tape === null ? FolderList : Run;
  render(html`<${page} tape=${tape} other=${words.get("with")} served=${served} />`, main);
}
