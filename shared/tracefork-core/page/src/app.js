// The page: the finding first, then timeline, exchange and blame side by side.
import { html } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { About } from "./about.js";
import { BlamePanel } from "./blame.js";
import { Branches } from "./branches.js";
import { forking, showing } from "./commands.js";
import { Conversation } from "./conversation.js";
import { ExchangePanel } from "./exchange.js";
import { Finding } from "./finding.js";
import { Flame } from "./flame.js";
import { Help, useKeys } from "./keys.js";
import { Lanes } from "./lanes.js";
import { Palette } from "./palette.js";
import { ByHand, copied } from "./parts.js";
import { against, usePlace, VIEWS } from "./place.js";
import { useSearch } from "./search.js";
import { visible } from "./text.js";
import { Timeline } from "./timeline.js";
import { FILTERS, Toolbar } from "./toolbar.js";

/** @typedef {import("./data.js").Index} Index */
/** @typedef {{run: number, index: Index | null, problem: string}} Loaded */

/**
 * @param {object} props
 * @param {import("./store.js").Store} props.store
 * @param {any} [props.head] What stands above the finding, with `store`, `here` and `index`.
 */
export function App({ store, head }) {
  const { report } = store;
  const { runs } = report;
  const [note, setNote] = useState({ words: "", command: "" });
  const { here, now, go } = usePlace(report, (words) => setNote({ words, command: "" }));
  const [loaded, setLoaded] = useState(/** @type {Loaded} */ ({ run: -1, index: null, problem: "" }));
  const [query, setQuery] = useState("");
  const [only, setOnly] = useState("");
  const [palette, setPalette] = useState(false);
  const help = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const search = useSearch(store, here.run, query);
  const run = runs[here.run];
  const base = store.first(here.run);
  const index = loaded.run === here.run ? loaded.index : null;

  useEffect(() => {
    let current = true;
    const load = () =>
      store.index(here.run).then(
        (index) => current && setLoaded({ run: here.run, index, problem: "" }),
        (error) =>
          current && setLoaded({ run: here.run, index: null, problem: String(error.message ?? error) }),
      );
    load();
    const leave = store.follow(load);
    return () => {
      current = false;
      leave();
    };
  }, [here.run]);

  useEffect(() => {
    if (new URLSearchParams(location.hash.slice(1) || report.place).get("panel") === "blame")
      /** @type {HTMLElement | null} */ (document.querySelector("section.blame"))?.focus();
  }, []);

  const { hits } = search;
  const rows = useMemo(() => {
    if (!index) return [];
    const wanted = (/** @type {number} */ i) => {
      if (hits && !hits.has(base + i)) return false;
      if (only === "errors") return index.errors[base + i] !== undefined;
      return !only || index.kind[i] === only;
    };
    return index.kind.map((_, i) => i).filter(wanted);
  }, [index, hits, only]);
  const marked = useMemo(() => {
    const named = (run.blame?.ranking ?? []).filter((part) => part.verdict);
    const errors = Object.keys(index?.errors ?? {}).map(Number);
    return [...new Set([...named.map((part) => part.exchange), ...errors])].sort((a, b) => a - b);
  }, [index, run]);

  const walk = (/** @type {number} */ by) => {
    const from = Math.max(0, rows.indexOf(now.current.step - base));
    const next = rows[Math.max(0, Math.min(rows.length - 1, from + by))];
    if (next !== undefined) go({ step: base + next, part: "step" }, true);
  };
  const mark = (/** @type {number | undefined} */ n) => n !== undefined && go({ step: n, part: "step" });
  const pick = (/** @type {number} */ n) => go({ step: n, part: "step" });
  const show = (/** @type {number} */ to, step = 0) => go({ run: to, step, part: "step" });
  const onpart = (/** @type {string} */ part) =>
    go({ part, ...(part === "diff" && against(runs, now.current.run, now.current.step)) });
  const copy = async (/** @type {string} */ command) => {
    const good = await copied(command);
    setNote(good ? { words: `copied: ${command}`, command: "" } : { words: "", command });
  };
  const fork = () => forking(runs, now.current);
  const command = () => showing(runs, now.current);

  useKeys({
    j: () => walk(1),
    k: () => walk(-1),
    ArrowDown: () => walk(1),
    ArrowUp: () => walk(-1),
    J: () => mark(marked.find((n) => n > now.current.step)),
    K: () => mark(marked.findLast((n) => n < now.current.step)),
    "[": () => show(Math.max(0, now.current.run - 1)),
    "]": () => show(Math.min(runs.length - 1, now.current.run + 1)),
    "/": () => field.current?.focus(),
    ":": () => setPalette(true),
    d: () => onpart("diff"),
    f: () => copy(fork()),
    y: () => copy(command()),
    "?": () => help.current?.showModal(),
    ...Object.fromEntries(Object.entries(VIEWS).map(([key, view]) => [key, () => go({ view })])),
  });
  const entries = () => [
    ...Object.values(VIEWS).map((view) => ({ words: `view: ${view}`, act: () => go({ view }) })),
    ...FILTERS.map(([value, words]) => ({ words: `show: ${words}`, act: () => setOnly(value) })),
    { words: "show the difference", hint: "d", act: () => onpart("diff") },
    { words: "show request and response", act: () => onpart("raw") },
    { words: "copy the command that shows this exchange", hint: command(), act: () => copy(command()) },
    { words: "copy the command that forks here", hint: fork(), act: () => copy(fork()) },
    { words: "copy what to type next", hint: run.finding.next, act: () => copy(run.finding.next) },
    { words: "search", hint: "/", act: () => field.current?.focus() },
    { words: "keys", hint: "?", act: () => help.current?.showModal() },
    ...runs.map((one, i) => ({ words: `run: ${one.name}`, hint: one.outcome.words, act: () => show(i) })),
  ];
  const view = { store, run, index, base, rows, step: here.step, onpick: pick };
  return html`
    ${head && html`<${head} store=${store} here=${here} go=${go} />`}
    <${Finding} report=${report} chosen=${here.run} onrun=${show} onhelp=${() => help.current?.showModal()} />
    <${Toolbar}
      view=${here.view} only=${only} query=${query} search=${search} field=${field}
      onview=${(/** @type {string} */ to) => go({ view: to })}
      ononly=${setOnly} onquery=${setQuery} onpalette=${() => setPalette(true)}
    />
    ${loaded.problem && html`<p class="problem foot">This page cannot be read: ${visible(loaded.problem)}</p>`}
    <div class="panels">
      <div class="left" role="tabpanel" id="view-panel" aria-labelledby=${`view-${here.view}`}>
        ${!index && !loaded.problem && html`<p class="quiet">unpacking…</p>`}
        ${index && here.view === "timeline" && html`<${Timeline} ...${view} />`}
        ${index && here.view === "conversation" && html`<${Conversation} key=${here.run} ...${view} run=${here.run} />`}
        ${index && here.view === "flame" && html`<${Flame} ...${view} />`}
        ${index && here.view === "lanes" && html`<${Lanes} ...${view} />`}
        ${here.view === "branches" && html`<${Branches} runs=${runs} run=${here.run} step=${here.step} onrun=${show} />`}
        ${here.view === "about" && html`<${About} run=${run} />`}
      </div>
      ${run.exchanges > 0 && html`<${ExchangePanel} store=${store} here=${here} onpart=${onpart} />`}
      ${(run.only === null || run.blame) && html`<${BlamePanel} blame=${run.blame} command=${run.finding.next} onpick=${pick} />`}
    </div>
    <div class="note" role="status">
      ${visible(note.words)}${note.command && html`<${ByHand} key=${note.command} command=${note.command} />`}
    </div>
    ${palette && html`<${Palette} entries=${entries()} exchanges=${run.exchanges} ongo=${pick} onclose=${() => setPalette(false)} />`}
    <${Help} dialog=${help} />`;
}
