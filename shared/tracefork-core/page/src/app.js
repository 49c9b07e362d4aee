// The page: the finding first, then timeline, exchange and blame side by side.
import { html, render } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { BlamePanel } from "./blame.js";
import { ExchangePanel } from "./exchange.js";
import { copied } from "./parts.js";
import { Store } from "./store.js";
import { duration, money, several, tokens, visible } from "./text.js";
import { About, Branches, Conversation, Flame, Lanes } from "./views.js";
import { VirtualList } from "./virtual.js";

/** @typedef {import("./data.js").Index} Index */

const VIEWS = { t: "timeline", c: "conversation", l: "lanes", $: "flame", b: "branches", a: "about" };
const KEYS = [
  ["j k", "next, previous exchange"],
  ["J K", "next, previous mark: an error, or a step that blame names"],
  ["[ ]", "previous, next run or branch"],
  ["/", "search"],
  [":", "go to an exchange by its number"],
  ["d", "difference from the exchange before, or from the parent's"],
  ["f", "copy the command that forks here"],
  ["y", "copy the command that shows this exchange"],
  ["t c l $ b a", "timeline, conversation, lanes, flame graph, branches, about"],
  ["?", "this help"],
];

/** @typedef {{run: number, step: number, view: string, part: string, other: number}} Place */

/** @param {Store} store @returns {Place} */
function place(store) {
  const words = new URLSearchParams(location.hash.slice(1));
  const { runs } = store.report;
  const number = (/** @type {string} */ name, /** @type {number} */ most) =>
    Math.max(0, Math.min(Number.parseInt(words.get(name) ?? "0", 10) || 0, Math.max(0, most)));
  const run = number("run", runs.length - 1);
  const named = runs[run].finding.exchanges[0] ?? 0;
  const step = words.has("step") ? number("step", runs[run].exchanges - 1) : named;
  return {
    run,
    step,
    view: words.get("view") ?? "timeline",
    part: words.get("part") ?? "step",
    other: words.has("with") ? number("with", runs[run].exchanges - 1) : Math.max(0, step - 1),
  };
}

/** @param {{store: Store}} props */
function App({ store }) {
  const [here, setHere] = useState(place(store));
  const [index, setIndex] = useState(/** @type {Index | null} */ (null));
  const [problem, setProblem] = useState("");
  const [query, setQuery] = useState("");
  const [hits, setHits] = useState(/** @type {Set<number> | null} */ (null));
  const [searching, setSearching] = useState(false);
  const [only, setOnly] = useState("");
  const [note, setNote] = useState("");
  const help = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const find = useRef(/** @type {HTMLInputElement | null} */ (null));
  const { runs, title } = store.report;
  const run = runs[here.run];
  const base = store.first(here.run);

  // Keys may come faster than the page is drawn: they count from where the last one went.
  const now = useRef(here);
  now.current = here;
  const go = (/** @type {Partial<Place>} */ change) => {
    const next = { ...now.current, ...change };
    now.current = next;
    const words = new URLSearchParams({ step: String(next.step), view: next.view, part: next.part });
    if (next.run) words.set("run", String(next.run));
    if (next.part === "diff") words.set("with", String(next.other));
    history.replaceState(null, "", `#${words}`);
    setHere(next);
  };
  useEffect(() => {
    const moved = () => setHere(place(store));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    setIndex(null);
    store.index(here.run).then(setIndex, (error) => setProblem(String(error.message ?? error)));
  }, [here.run]);
  useEffect(() => {
    if (!query) {
      setHits(null);
      setSearching(false);
      return;
    }
    const id = Date.now();
    const found = new Set();
    setHits(new Set());
    setSearching(true);
    store.onfound = (data) => {
      if (data.query !== id) return;
      for (const hit of data.hits ?? []) found.add(hit);
      setHits(new Set(found));
      if (data.done) setSearching(false);
    };
    store.search(here.run, id, query);
  }, [query, here.run]);

  const rows = useMemo(() => {
    if (!index) return [];
    const wanted = (/** @type {number} */ i) => {
      const n = base + i;
      if (hits && !hits.has(n)) return false;
      if (only === "errors") return index.errors[n] !== undefined;
      return !only || index.kind[i] === only;
    };
    return index.kind.map((_, i) => i).filter(wanted);
  }, [index, hits, only]);
  const marked = useMemo(() => {
    const named = (run.blame?.ranking ?? []).filter((part) => part.verdict).map((part) => part.exchange);
    return [...new Set([...named, ...Object.keys(index?.errors ?? {}).map(Number)])].sort((a, b) => a - b);
  }, [index, run]);
  const at = rows.indexOf(here.step - base);
  const step = (/** @type {number} */ by) => {
    const from = Math.max(0, rows.indexOf(now.current.step - base));
    const next = rows[Math.max(0, Math.min(rows.length - 1, from + by))];
    if (next !== undefined) go({ step: base + next, part: "step" });
  };
  const copy = (/** @type {string} */ command) =>
    copied(command).then((good) => setNote(good ? `copied: ${command}` : command));
  const name = /[^\w./-]/.test(run.name) ? `'${run.name.replaceAll("'", "'\\''")}'` : run.name;

  useEffect(() => {
    const typed = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target.matches("input, textarea, select")) {
        if (event.key === "Escape") target.blur();
        return;
      }
      const actions = /** @type {Record<string, () => void>} */ ({
        j: () => step(1),
        k: () => step(-1),
        ArrowDown: () => step(1),
        ArrowUp: () => step(-1),
        J: () => go({ step: marked.find((n) => n > here.step) ?? here.step }),
        K: () => go({ step: marked.findLast((n) => n < here.step) ?? here.step }),
        "[": () => go({ run: Math.max(0, here.run - 1), step: 0 }),
        "]": () => go({ run: Math.min(runs.length - 1, here.run + 1), step: 0 }),
        "/": () => find.current?.focus(),
        ":": () => {
          const wanted = prompt("Go to exchange");
          if (wanted && /^\d+$/.test(wanted)) go({ step: Math.min(Number(wanted), run.exchanges - 1) });
        },
        d: () => go({ part: "diff", other: Math.max(0, here.step - 1) }),
        f: () => copy(`tracefork fork ${name} --at ${here.step}`),
        y: () => copy(`tracefork show ${name} ${here.step}`),
        "?": () => help.current?.showModal(),
      });
      const view = VIEWS[/** @type {keyof typeof VIEWS} */ (event.key)];
      const action = view ? () => go({ view }) : actions[event.key];
      if (!action || (event.key.startsWith("Arrow") && !target.matches(".list, body"))) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", typed);
    return () => removeEventListener("keydown", typed);
  });

  const onpick = (/** @type {number} */ n) => go({ step: n, part: "step" });
  const verdicts = new Map((run.blame?.ranking ?? []).map((part) => [part.exchange, part.verdict]));
  const { finding, totals } = run;
  return html`
    <header class="top">
      <p class="title"><b>${visible(title)}</b>
        ${
          runs.length > 1 &&
          html`<label>run <select value=${here.run} onChange=${(/** @type {any} */ event) => go({ run: Number(event.target.value), step: 0 })}>
            ${runs.map((one, i) => html`<option value=${i} selected=${i === here.run}>${visible(one.name)} · ${visible(one.outcome.words)}</option>`)}
          </select></label>`
        }
        <span class=${run.outcome.ok ? "good" : "bad"}>${run.outcome.ok ? "✓" : "✗"} ${visible(run.outcome.words)}</span>
        <button onClick=${() => help.current?.showModal()}>keys</button></p>
      <h1>${visible(finding.line)}</h1>
      <p>${finding.sure && html`<span class="tag">${finding.sure}</span> `}${visible(finding.more)}</p>
      <p class="quiet">${several(run.exchanges, "exchange")} · ${totals.model_calls} model, ${totals.tool_calls} tool, ${totals.http} HTTP
        ${totals.tokens_in !== null && ` · ${tokens(totals.tokens_in)} → ${tokens(totals.tokens_out ?? 0)} tokens`}
        ${totals.cost && ` · ${totals.cost}`} · ${duration(run.took)} · ${several(run.lanes.length, "lane")}</p>
    </header>
    <nav role="tablist" aria-label="views">
      ${Object.entries(VIEWS).map(
        ([key, view]) => html`<button role="tab" aria-selected=${here.view === view} title=${`key ${key}`} onClick=${() => go({ view })}>${view}</button>`,
      )}
      <span class="grow"></span>
      <label>show <select value=${only} onChange=${(/** @type {any} */ event) => setOnly(event.target.value)}>
        <option value="">all</option><option value="model">model calls</option><option value="tool">tools</option>
        <option value="http">HTTP</option><option value="errors">errors</option></select></label>
      <label>search <input ref=${find} type="search" value=${query} onInput=${(/** @type {any} */ event) => setQuery(event.target.value)} /></label>
      <span role="status">${hits ? `${several(hits.size, "hit")}${searching ? " so far" : ""}` : ""}</span>
    </nav>
    ${problem && html`<p class="problem">This page cannot be read: ${visible(problem)}</p>`}
    <div class="panels">
      <div class="left">
        ${!index && html`<p class="quiet">unpacking…</p>`}
        ${index && here.view === "timeline" && html`<${VirtualList}
          count=${rows.length} height=${44} measured current=${at} label="timeline" name="row"
          onpick=${(/** @type {number} */ i) => onpick(base + rows[i])}
          row=${(/** @type {number} */ i) => html`<${Row} index=${index} i=${rows[i]} n=${base + rows[i]} lanes=${run.lanes} verdict=${verdicts.get(base + rows[i]) ?? ""} />`} />
          ${rows.length < index.kind.length && html`<p class="quiet">${several(index.kind.length - rows.length, "exchange")} not shown: filtered</p>`}
          ${base > 0 && html`<p class="quiet">exchanges 0 to ${base - 1} are those of the run it comes from</p>`}`}
        ${index && here.view === "conversation" && html`<${Conversation} store=${store} run=${here.run} index=${index} step=${here.step} onpick=${onpick} />`}
        ${index && here.view === "flame" && html`<${Flame} index=${index} base=${base} onpick=${onpick} />`}
        ${index && here.view === "lanes" && html`<${Lanes} run=${run} index=${index} base=${base} step=${here.step} onpick=${onpick} />`}
        ${here.view === "branches" && html`<${Branches} runs=${runs} run=${here.run} step=${here.step} onrun=${(/** @type {number} */ to, /** @type {number} */ n) => go({ run: to, step: n, part: "step" })} />`}
        ${here.view === "about" && html`<${About} run=${run} />`}
      </div>
      ${run.exchanges > 0 && html`<${ExchangePanel} store=${store} run=${here.run} step=${here.step} view=${here.part} other=${here.other} onview=${(/** @type {string} */ part) => go({ part })} />`}
      <${BlamePanel} blame=${run.blame} command=${finding.next} onpick=${onpick} />
    </div>
    <p class="note" role="status">${visible(note)}</p>
    <dialog ref=${help} aria-label="keys"><h2>keys</h2>
      <dl class="facts">${KEYS.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl>
      <button onClick=${() => help.current?.close()}>close</button></dialog>`;
}

/** @param {{index: Index, i: number, n: number, lanes: string[], verdict: string}} props */
function Row({ index, i, n, lanes, verdict }) {
  const error = index.errors[n];
  return html`<span class="n">${n}</span>
    <span class=${`kind ${index.kind[i]}`}>${index.kind[i]}</span>
    <span class="label">${visible(index.label[i])}</span>
    ${verdict && html`<span class="tag blamed">${verdict}</span>`}
    ${(index.marks[n] ?? []).map((mark) => html`<span class="tag">${mark}</span>`)}
    ${lanes.length > 1 && html`<span class="lane">${visible(lanes[index.lane[i]] ?? "").slice(-18)}</span>`}
    <span class="figures">${duration(index.took[i])} ${money(index.cost[i])}</span>
    <span class=${error ? "gist bad" : "gist"}>${error ? `✗ ${visible(error)}` : visible(index.gist[i])}</span>`;
}

const main = document.getElementById("page");
if (main) {
  try {
    const store = new Store(document);
    main.replaceChildren();
    render(html`<${App} store=${store} />`, main);
  } catch (error) {
    main.textContent = `This report cannot be read: ${error instanceof Error ? error.message : error}`;
  }
}
