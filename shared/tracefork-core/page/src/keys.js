// What the keys do.
import { html } from "htm/preact";
import { useEffect } from "preact/hooks";

const KEYS = [
  ["j k", "next, previous exchange"],
  ["J K", "next, previous mark: an error, or a step that blame names"],
  ["[ ]", "previous, next run or branch"],
  ["/", "search"],
  [":", "go to an exchange, a view, a run or a command"],
  ["d", "difference from the parent's exchange, or from the one before"],
  ["f", "copy the command that forks here"],
  ["y", "copy the command that shows this exchange, or this difference"],
  ["t c l $ b a", "timeline, conversation, lanes, flame graph, branches, about"],
  ["?", "this help"],
];

/**
 * Act on keys, except where the reader types a text or a dialog is open.
 * @param {Record<string, () => void>} actions
 */
export function useKeys(actions) {
  useEffect(() => {
    const typed = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector("dialog[open]")) return;
      if (target.matches("input, textarea, select")) {
        if (event.key === "Escape") target.blur();
        return;
      }
      const action = actions[event.key];
      if (!action || (event.key.startsWith("Arrow") && !target.matches("[role=listbox], body"))) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", typed);
    return () => removeEventListener("keydown", typed);
  });
}

/** The keys as a dialog. @param {{dialog: any}} props A ref to it. */
export function Help({ dialog }) {
  return html`<dialog ref=${dialog} aria-label="keys"><h2>keys</h2>
    <dl class="facts">${KEYS.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl>
    <button onClick=${() => dialog.current?.close()}>close</button></dialog>`;
}
