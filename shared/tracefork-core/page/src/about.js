// What is known of the recording.
import { html } from "htm/preact";
import { Command } from "./parts.js";
import { several, visible } from "./text.js";

/** @typedef {import("./data.js").Run} Run */

/** @param {{run: Run}} props */
export function About({ run }) {
  const lists = /** @type {[string, string[]][]} */ ([
    ["captured", run.coverage],
    ["masked", run.masked],
    ["limits of this run", run.limits],
  ]);
  return html`<section class="scroll view" aria-label="about this run" tabindex="0">
    ${lists.map(
      ([name, lines]) => html`<h3>${name}</h3>${lines.length ? html`<ul>${lines.map((line) => html`<li>${visible(line)}</li>`)}</ul>` : html`<p class="quiet">nothing</p>`}`,
    )}
    <h3>checkpoints</h3>
    ${run.checkpoints.length ? run.checkpoints.slice(0, 100).map((one) => html`<p>before exchange ${one.exchange}: ${visible(one.words)}</p><${Command} command=${one.command} />`) : html`<p class="quiet">none</p>`}
    ${run.checkpoints.length > 100 && html`<p class="quiet">${several(run.checkpoints.length - 100, "more checkpoint")}: tracefork show --checkpoints</p>`}
    <h3>recording</h3>
    <dl class="facts">${run.facts.map(([name, value]) => html`<dt>${visible(name)}</dt><dd>${visible(value)}</dd>`)}</dl>
  </section>`;
}
