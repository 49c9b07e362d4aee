// Small pieces that several views show.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { size, visible } from "./text.js";

/** @typedef {import("./data.js").Message} Message */
/** @typedef {import("./data.js").MessagePart} MessagePart */

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

const LABELS = { tool_call: "calls", tool_result: "result", reasoning: "thinks", text: "" };

/**
 * A message as it was said.
 * @param {{message: Message, isNew: boolean, number: number}} props
 */
export function Said({ message, isNew, number }) {
  return html`<article class=${`message ${message.side}`} id=${`message-${number}`}>
    ${message.parts.map((part) => {
      const label = LABELS[/** @type {keyof typeof LABELS} */ (part.type)] ?? part.type;
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
  </article>`;
}

/** A command with a button that copies it. @param {{command: string}} props */
export function Command({ command }) {
  const [done, setDone] = useState("");
  const copy = () => copied(command).then((good) => setDone(good ? "copied" : "select and copy it"));
  return html`<p class="command"><code tabindex="0">${visible(command)}</code>
    <button onClick=${copy}>copy</button><span role="status">${done}</span></p>`;
}

/** @param {string} text @returns {Promise<boolean>} */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const good = document.execCommand("copy");
    field.remove();
    return good;
  }
}
