// The list of a folder: its runs with their branches under them, the newest first.
import { html } from "htm/preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { bytes, duration, several, visible } from "./text.js";
import { VirtualList } from "./virtual.js";

/** @typedef {import("./data.js").Entry} Entry */

/**
 * Return entries with the depth of each: a branch stands under its parent.
 * @param {Entry[]} entries @returns {{entry: Entry, depth: number}[]}
 */
export function tree(entries) {
  const names = new Set(entries.map((entry) => entry.name));
  /** @type {Map<string, Entry[]>} */
  const branches = new Map();
  const roots = [];
  for (const entry of [...entries].sort((a, b) => (b.started ?? b.modified) - (a.started ?? a.modified))) {
    const parent = entry.needs.find((name) => names.has(name));
    if (parent === undefined) roots.push(entry);
    else branches.set(parent, [...(branches.get(parent) ?? []), entry]);
  }
  /** @type {{entry: Entry, depth: number}[]} */
  const rows = [];
  const add = (/** @type {Entry} */ entry, /** @type {number} */ depth) => {
    rows.push({ entry, depth });
    for (const branch of branches.get(entry.name) ?? []) add(branch, depth + 1);
  };
  for (const root of roots) add(root, 0);
  return rows;
}

/** Whether a run is known to have ended badly. @param {Entry} entry */
function hasFailed(entry) {
  return entry.outcome !== null && entry.outcome !== "ok" && entry.outcome !== "unknown";
}

const SHOWS = /** @type {[string, string, (entry: Entry) => boolean][]} */ ([
  ["", "all", () => true],
  ["failed", "failed", (entry) => hasFailed(entry)],
  ["open", "not ended", (entry) => entry.state === "open"],
  ["problem", "unreadable", (entry) => entry.problem !== null],
]);

/** @param {{served: import("./live.js").Served}} props */
export function FolderList({ served }) {
  const [listed, setListed] = useState(/** @type {Map<string, Entry> | null} */ (null));
  const [left, setLeft] = useState(false);
  const [lost, setLost] = useState(false);
  const [query, setQuery] = useState("");
  const [shows, setShows] = useState("");
  useEffect(() => {
    const events = new EventSource("/api/folder");
    let known = /** @type {Map<string, Entry>} */ (new Map());
    events.onopen = () => {
      known = new Map();
      setLost(false);
    };
    events.onerror = () => setLost(true);
    events.addEventListener("entries", ({ data }) => {
      const { entries, gone, left } = JSON.parse(data);
      for (const entry of entries) known.set(entry.name, entry);
      for (const name of gone) known.delete(name);
      setListed(new Map(known));
      setLeft(left);
    });
    return () => events.close();
  }, []);
  const rows = useMemo(() => {
    const wanted = SHOWS.find(([name]) => name === shows)?.[2] ?? (() => true);
    const text = query.toLowerCase();
    const has = (/** @type {Entry} */ entry) =>
      `${entry.name} ${entry.words ?? ""} ${entry.outcome ?? ""} ${entry.problem ?? ""}`.toLowerCase().includes(text);
    return tree([...(listed?.values() ?? [])].filter((entry) => wanted(entry) && has(entry)));
  }, [listed, query, shows]);
  const [at, setAt] = useState(0);
  const open = (/** @type {number} */ i) => {
    if (rows[i]) location.assign(`/run?tape=${encodeURIComponent(rows[i].entry.name)}`);
  };
  useEffect(() => {
    const typed = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
      const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
      if (by) setAt((now) => Math.max(0, Math.min(rows.length - 1, now + by)));
      else if (event.key === "Enter" && !target.matches("a, button")) open(at);
      else if (event.key === "/") document.getElementById("find")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", typed);
    return () => removeEventListener("keydown", typed);
  });
  const hidden = (listed?.size ?? 0) - rows.length;
  return html`<header class="top">
      <p class="title"><b>${visible(served.folder)}</b>
        <span class="quiet">${served.allow_run ? "the page may run agents" : "read-only"}</span></p>
      <h1>${listed ? several(listed.size, "run") : "reading…"}</h1>
    </header>
    <nav aria-label="filter and search">
      <label>show <select value=${shows} onChange=${(/** @type {any} */ event) => setShows(event.target.value)}>
        ${SHOWS.map(([name, words]) => html`<option value=${name} selected=${name === shows}>${words}</option>`)}
      </select></label>
      <label>search <input id="find" type="search" value=${query}
        onInput=${(/** @type {any} */ event) => setQuery(event.target.value)} /></label>
      <span role="status" class=${lost ? "problem" : "quiet"}>
        ${lost ? "the server does not answer; trying again" : left ? "reading…" : ""}
        ${hidden > 0 && ` ${several(hidden, "run")} not shown: filtered`}</span>
    </nav>
    ${
      listed?.size === 0
        ? html`<p class="foot">There is no tape in this folder yet. <code>tracefork record SCRIPT.py</code> records
          one, and it appears here.</p>`
        : html`<${VirtualList}
          count=${rows.length} height=${50} current=${Math.min(at, rows.length - 1)} label="runs" name="run"
          onpick=${open}
          row=${(/** @type {number} */ i) => html`<${Row} ...${rows[i]} />`}
        />`
    }`;
}

/** @param {{entry: Entry, depth: number}} props */
function Row({ entry, depth }) {
  const when = new Date(entry.started ?? entry.modified).toLocaleString();
  const failed = hasFailed(entry);
  const ended = entry.outcome === "unknown" ? "? how it ended is not known" : "✓ ended well";
  const state = failed ? `✗ ${entry.outcome}` : entry.outcome ? ended : STATES[entry.state];
  return html`${depth > 0 && html`<span class="n">${"· ".repeat(depth - 1)}└</span>`}
    <span class="label">${visible(entry.name)}</span>
    ${entry.words && html`<span class="tag">${visible(entry.words)}</span>`}
    ${entry.at !== null && html`<span class="lane">leaves its parent at ${entry.at}</span>`}
    <span class="figures">${when} · ${entry.took === null ? "—" : duration(entry.took)} · ${bytes(entry.bytes)}</span>
    <span class=${failed || entry.problem ? "gist bad" : "gist"}>${visible(state ?? entry.state)}
      ${entry.exchanges !== null && ` · ${several(entry.exchanges, "exchange")}`}
      ${entry.problem && ` · ${visible(entry.problem)}`}</span>`;
}

const STATES = /** @type {Record<string, string>} */ ({
  "": "not read yet",
  open: "recording, or cut off",
  sealed: "sealed: its key is not here",
  damaged: "cannot be read",
  threads: "states of a framework",
});
