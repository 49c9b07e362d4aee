// Small pieces that several views show.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { size, visible } from "./text.js";

/** @typedef {import("./data.js").Message} Message */

const SHOWN = 4000;
const MORE = 200_000;

/** A long text, cut until it is asked for. @param {{text: string, code?: boolean}} props */
export function Long({ text, code }) {
  const [most, setMost] = useState(SHOWN);
  const cut = text.length > most;
  const shown = visible(cut ? text.slice(0, most) : text);
  return html`${code ? html`<pre tabindex="0">${shown}</pre>` : html`<div class="said">${shown}</div>`}
    ${cut && html`<button class="more" onClick=${() => setMost(most + MORE)}>
      show more of ${size(text.length)}
    </button>`}`;
}

/** JSON, indented; other text as it is. @param {string} text */
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * What a promise gives, once it is there. It is asked again when the key changes, or the version:
 * then what was there stays until the other has come.
 * @template T
 * @param {string} key @param {() => Promise<T>} load @param {string} [version]
 * @returns {{value: T | null, error: string}}
 */
export function useLoaded(key, load, version = "") {
  const [found, setFound] = useState({ key: "", value: /** @type {T | null} */ (null), error: "" });
  useEffect(() => {
    let here = true;
    load().then(
      (value) => here && setFound({ key, value, error: "" }),
      (error) => here && setFound({ key, value: null, error: String(error.message ?? error) }),
    );
    return () => {
      here = false;
    };
  }, [key, version]);
  return found.key === key ? found : { value: null, error: "" };
}

/** @param {{error: string}} props */
export function Problem({ error }) {
  return html`<p class="problem">This part cannot be read: ${visible(error)}</p>`;
}

// No object: a type on a tape may be "constructor".
const LABELS = new Map([
  ["tool_call", "calls"],
  ["tool_result", "result"],
  ["reasoning", "thinks"],
  ["text", ""],
]);

/**
 * A message as it was said.
 * @param {{message: Message, isNew: boolean, number: number}} props
 */
export function Said({ message, isNew, number }) {
  return html`<div class=${`message ${message.side}`} id=${`message-${number}`}>
    ${message.parts.map((part) => {
      const label = LABELS.get(part.type) ?? visible(part.type);
      const name = part.name ? ` ${visible(part.name)}` : "";
      return html`<header>
          <b>${visible(message.who)}</b> ${label}${name && html`<code>${name}</code>`}
          ${isNew && html`<span class="tag">new</span>`}
        </header>
        ${
          part.type === "text" || part.type === "reasoning"
            ? html`<${Long} text=${part.text} />`
            : html`<${Long} text=${pretty(part.text)} code />`
        }`;
    })}
  </div>`;
}

/**
 * A message by its number in the run that holds exchange `n`.
 * @param {{store: import("./store.js").Store, run: number, n: number, number: number,
 *   isNew: boolean}} props
 */
export function Numbered({ store, run, n, number, isNew }) {
  const version = store.version(run, n);
  const loaded = useLoaded(`${run}/${number}`, () => store.message(run, n, number), version);
  const message = loaded.value ?? store.peek(run, n, number);
  if (loaded.error) return html`<${Problem} error=${loaded.error} />`;
  if (!message) return html`<p class="quiet">message ${number} is not unpacked yet</p>`;
  return html`<${Said} message=${message} number=${number} isNew=${isNew} />`;
}

/** A command with a button that copies it. @param {{command: string}} props */
export function Command({ command }) {
  const [state, setState] = useState("");
  const copy = () => copied(command).then((good) => setState(good ? "copied" : "failed"));
  useEffect(() => setState(""), [command]);
  if (state === "failed") return html`<${ByHand} command=${command} />`;
  return html`<p class="command"><code>${visible(command)}</code>
    <button onClick=${copy}>copy</button><span role="status">${state}</span></p>`;
}

/** A command that the reader has to copy, because the page may not. @param {{command: string}} props */
export function ByHand({ command }) {
  const choose = (/** @type {HTMLInputElement | null} */ field) => {
    field?.focus();
    field?.select();
  };
  return html`<p class="command byhand" role="status"><label>
    The browser refused to copy. Press Ctrl+C:
    <input readonly value=${command} ref=${choose} /></label></p>`;
}

/** @param {string} text @returns {Promise<boolean>} */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    // A modal dialog makes all that is outside it inert.
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const good = document.execCommand("copy");
    field.remove();
    return good;
  }
}
