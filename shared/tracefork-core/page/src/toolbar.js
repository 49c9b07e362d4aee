// The views as tabs, the filter and the search.
import { html } from "htm/preact";
import { VIEWS } from "./place.js";
import { Tabs } from "./tabs.js";
import { visible } from "./text.js";

export const FILTERS = /** @type {[string, string][]} */ ([
  ["", "all"],
  ["model", "model calls"],
  ["tool", "tools"],
  ["http", "HTTP"],
  ["errors", "errors"],
]);
const TABS = /** @type {[string, string][]} */ (Object.values(VIEWS).map((view) => [view, view]));

/**
 * @param {object} props
 * @param {string} props.view
 * @param {string} props.only The filter.
 * @param {string} props.query
 * @param {import("./search.js").Search} props.search
 * @param {any} props.field A ref to the field of the search.
 * @param {(view: string) => void} props.onview
 * @param {(only: string) => void} props.ononly
 * @param {(query: string) => void} props.onquery
 * @param {() => void} props.onpalette
 * @param {any} [props.children] What else belongs into the toolbar.
 */
export function Toolbar(props) {
  const { view, only, query, search, field, onview, ononly, onquery, onpalette, children } = props;
  return html`<nav aria-label="views, filter and search">
      <${Tabs} label="views" name="view" tabs=${TABS} chosen=${view} onchoose=${onview} />
      <span class="grow"></span>
      ${children}
      <label>show <select value=${only} onChange=${(/** @type {any} */ event) => ononly(event.target.value)}>
        ${FILTERS.map(([value, words]) => html`<option value=${value} selected=${value === only}>${words}</option>`)}
      </select></label>
      <label>search <input ref=${field} type="search" value=${query}
        onInput=${(/** @type {any} */ event) => onquery(event.target.value)} /></label>
      <span role="status">${search.words}</span>
      <button onClick=${onpalette}>go to…</button>
    </nav>
    ${search.problem && html`<p class="problem foot" role="status">${visible(search.problem)}</p>`}`;
}
