// Commands that the page may start, with `tracefork view --allow-run`: each is shown and confirmed first.
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { visible } from "./text.js";

/** @typedef {{words: string[], command: string, folder: string, agent: string, ceiling: string, effects: string[]}} Offer */
/** @typedef {{job: number, command: string, lines: string[], exit: number | null}} Output */

const FIELDS = /** @type {Record<string, string[]>} */ ({
  fork: ["change", "writes"],
  try: ["change"],
  rerun: ["budget", "writes"],
  blame: ["oracle", "budget", "writes"],
});
const CHANGES = /** @type {Record<string, string[]>} */ ({
  fork: ["", "text", "model", "temperature", "system", "prompt", "fail"],
  try: ["model", "temperature", "system", "prompt"],
});
const WRITES = /** @type {[string, string][]} */ ([
  ["refuse", "stop before them"],
  ["stub", "give their recorded result"],
  ["allow", "make them again"],
]);

/**
 * @param {string} path @param {object} document @returns {Promise<any>}
 */
async function post(path, document) {
  const answer = await fetch(path, { method: "POST", body: JSON.stringify(document) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** The buttons, and what the last command printed. @param {{tape: string, step: number}} props */
export function Jobs({ tape, step }) {
  const [verb, setVerb] = useState("");
  const [output, setOutput] = useState(/** @type {Output | null} */ (null));
  const follow = (/** @type {number} */ job, /** @type {string} */ command) => {
    setVerb("");
    setOutput({ job, command, lines: [], exit: null });
    const events = new EventSource(`/api/job?job=${job}`);
    events.addEventListener("state", ({ data }) => {
      const { lines, exit } = JSON.parse(data);
      setOutput((before) => before && { ...before, lines: [...before.lines, ...lines], exit });
      if (exit !== null) events.close();
    });
  };
  return html`${Object.keys(FIELDS).map(
    (name) => html`<button onClick=${() => setVerb(name)}>${name}${FIELDS[name].includes("change") ? ` at ${step}` : ""}…</button>`,
  )}
    ${verb && html`<${Confirm} key=${verb} verb=${verb} tape=${tape} step=${step} onstart=${follow} onclose=${() => setVerb("")} />`}
    ${output && html`<${Running} output=${output} onclose=${() => setOutput(null)} />`}`;
}

/**
 * Ask what is to be done, show what that comes to, and start it if it is confirmed.
 * @param {{verb: string, tape: string, step: number, onstart: (job: number, command: string) => void,
 *   onclose: () => void}} props
 */
function Confirm({ verb, tape, step, onstart, onclose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [wish, setWish] = useState({
    change: CHANGES[verb]?.[0] ?? "",
    value: "",
    oracle: verb === "blame" ? "exit" : "",
    budget: { blame: "100 calls", rerun: "20 calls" }[verb] ?? "",
    writes: "refuse",
  });
  const [offer, setOffer] = useState(/** @type {{offer: string, shown: Offer} | null} */ (null));
  const [problem, setProblem] = useState("");
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const at = FIELDS[verb].includes("change") ? { at: step } : {};
  useEffect(() => {
    let current = true;
    setOffer(null);
    const asked = setTimeout(
      () =>
        post("/api/offer", { verb, tape, ...at, ...wish }).then(
          (made) => current && (setOffer(made), setProblem("")),
          (error) => current && setProblem(error.message),
        ),
      150,
    );
    return () => {
      current = false;
      clearTimeout(asked);
    };
  }, [wish, step]);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) =>
    setWish((before) => ({ ...before, [name]: event.target.value }));
  const start = () =>
    post("/api/start", { offer: offer?.offer }).then(
      ({ job }) => onstart(job, offer?.shown.command ?? ""),
      (error) => setProblem(error.message),
    );
  const has = (/** @type {string} */ name) => FIELDS[verb].includes(name);
  return html`<dialog ref=${dialog} class="confirm" aria-label=${verb} onClose=${onclose}>
    <h2>${verb} ${visible(tape)}${has("change") ? ` at ${step}` : ""}</h2>
    ${
      has("change") &&
      html`<p><label>change <select value=${wish.change} onChange=${set("change")}>
        ${CHANGES[verb].map((name) => html`<option value=${name} selected=${name === wish.change}>${name || "nothing: ask again"}</option>`)}
      </select></label>
      ${wish.change && html`<label> to <input value=${wish.value} onInput=${set("value")} /></label>`}</p>`
    }
    ${has("oracle") && html`<p><label>a good run is <input value=${wish.oracle} onInput=${set("oracle")} /></label></p>`}
    ${has("budget") && html`<p><label>at most <input value=${wish.budget} onInput=${set("budget")} /></label></p>`}
    ${
      has("writes") &&
      html`<p><label>calls that may change something: <select value=${wish.writes} onChange=${set("writes")}>
        ${WRITES.map(([name, words]) => html`<option value=${name} selected=${name === wish.writes}>${words}</option>`)}
      </select></label></p>`
    }
    ${problem && html`<p class="problem" role="status">${visible(problem)}</p>`}
    ${
      offer &&
      html`<dl class="facts">
        <dt>runs</dt><dd><code>${visible(offer.shown.command)}</code></dd>
        <dt>agent</dt><dd><code>${visible(offer.shown.agent)}</code></dd>
        <dt>folder</dt><dd>${visible(offer.shown.folder)}</dd>
        <dt>costs</dt><dd>${visible(offer.shown.ceiling)}</dd>
        <dt>effects</dt><dd>${offer.shown.effects.length ? offer.shown.effects.map((one) => html`<p>${visible(one)}</p>`) : "none is known"}</dd>
      </dl>`
    }
    <p><button disabled=${!offer} onClick=${start}>run it</button> <button onClick=${() => dialog.current?.close()}>leave it</button></p>
  </dialog>`;
}

/** What a command prints, while it runs and after. @param {{output: Output, onclose: () => void}} props */
function Running({ output, onclose }) {
  const end = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => end.current?.scrollTo(0, end.current.scrollHeight), [output.lines.length]);
  const ended = output.exit !== null;
  return html`<section class="job" aria-label="command">
    <p><code>${visible(output.command)}</code>
      <span role="status">${ended ? `ended with exit code ${output.exit}` : "running"}</span>
      ${
        ended
          ? html`<button onClick=${onclose}>close</button>`
          : html`<button onClick=${() => post("/api/cancel", { job: output.job })}>cancel</button>`
      }</p>
    <pre ref=${end} tabindex="0">${output.lines.map((line) => `${visible(line)}\n`).join("")}</pre>
  </section>`;
}
