// The palette: type a number to go to an exchange, or words to find a view, a run or a command.
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { several, visible } from "./text.js";

/** @typedef {{words: string, hint?: string, act: () => void}} Entry */

const SHOWN = 50;

/**
 * Return the entries for what was typed: all its words have to be in an entry.
 * @param {Entry[]} entries @param {string} typed @param {number} exchanges
 * @param {(n: number) => void} ongo @returns {Entry[]}
 */
function matching(entries, typed, exchanges, ongo) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter((entry) => {
    const text = `${entry.words} ${entry.hint ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const n = Number(typed);
  if (!/^\s*\d+\s*$/.test(typed) || n >= exchanges) return found;
  return [{ words: `go to exchange ${n}`, act: () => ongo(n) }, ...found];
}

/**
 * @param {{entries: Entry[], exchanges: number, ongo: (n: number) => void, onclose: () => void}} props
 */
export function Palette({ entries, exchanges, ongo, onclose }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  // Not after the next frame: the first key after `:` belongs to the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const found = matching(entries, typed, exchanges, ongo);
  const shown = found.slice(0, SHOWN);
  const chosen = Math.min(at, shown.length - 1);
  const choose = (/** @type {Entry} */ entry) => {
    dialog.current?.close();
    entry.act();
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && shown[chosen]) choose(shown[chosen]);
    else if (by && shown.length) setAt((chosen + by + shown.length) % shown.length);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    document.getElementById(`entry-${chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return html`<dialog ref=${dialog} class="palette" aria-label="go to" onClose=${onclose}>
    <input
      role="combobox" aria-expanded="true" aria-controls="entries" aria-autocomplete="list"
      aria-activedescendant=${chosen >= 0 ? `entry-${chosen}` : null}
      aria-label="the number of an exchange, a view, a run or a command"
      placeholder=${`0 to ${exchanges - 1}, or a view, a run, a command`}
      value=${typed} onKeyDown=${pressed}
      onInput=${(/** @type {any} */ event) => {
        setTyped(event.target.value);
        setAt(0);
      }}
    />
    <ul id="entries" role="listbox" aria-label="choices" tabindex="-1">
      ${shown.map(
        (entry, i) => html`<li
          key=${i} id=${`entry-${i}`} role="option" aria-selected=${i === chosen}
          onClick=${() => choose(entry)}
        ><span>${visible(entry.words)}</span> <small>${visible(entry.hint ?? "")}</small></li>`,
      )}
    </ul>
    <p class="quiet" role="status">
      ${!shown.length && `Nothing has this name. This run has exchanges 0 to ${exchanges - 1}.`}
      ${found.length > SHOWN && `${several(found.length - SHOWN, "more choice")}: type on`}
    </p>
  </dialog>`;
}
