// The search for a text in all that a run holds. The worker does it, and hits arrive as they are found.
import { useEffect, useState } from "preact/hooks";
import { several } from "./text.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {{hits: Set<number> | null, words: string, problem: string}} Search */

/** @type {Search} */
const NONE = { hits: null, words: "", problem: "" };
let count = 0;

/**
 * @param {Store} store @param {number} run @param {string} query
 * @returns {Search} The exchanges that have it (null without a query), and how far the search is.
 */
export function useSearch(store, run, query) {
  const [state, setState] = useState(NONE);
  useEffect(() => {
    if (!query) {
      setState(NONE);
      return;
    }
    const id = ++count;
    const hits = new Set();
    setState({ hits: new Set(), words: "searching…", problem: "" });
    store.onfound = (data) => {
      if (data.query !== id) return;
      for (const hit of data.hits ?? []) hits.add(hit);
      const failed = data.failed ?? [];
      setState({
        hits: new Set(hits),
        words: `${several(hits.size, "hit")}${data.done ? "" : " so far"}`,
        problem: failed.length
          ? `${failed.length} of ${several(data.parts ?? 0, "part")} could not be searched: ${failed.join("; ")}`
          : "",
      });
    };
    store.search(run, id, query);
  }, [query, run]);
  return state;
}
