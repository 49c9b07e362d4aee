// What blame found: the ranking of the exchanges with intervals, and the curve of failures.
import { html } from "htm/preact";
import { Command } from "./parts.js";
import { visible } from "./text.js";

/** @typedef {import("./data.js").Blame} Blame */

/** @param {number | null} share */
function percent(share) {
  return share === null ? "—" : `${Math.round(share * 100)} %`;
}

/** @param {{blame: Blame | null, command: string, onpick: (n: number) => void}} props */
export function BlamePanel({ blame, command, onpick }) {
  if (!blame)
    return html`<section class="blame" aria-label="blame"><h2>blame</h2>
      <p>No blame was run, so no step is named.</p><${Command} command=${command} /></section>`;
  return html`<section class="blame scroll" aria-label="blame" tabindex="0">
    <h2>blame: ${visible(blame.verdict)}</h2>
    <p>${visible(blame.sentence)}</p>
    <ol class="ranking">
      ${blame.ranking.map(
        (part) => html`<li key=${part.exchange}>
          <button onClick=${() => onpick(part.exchange)}>
            <b>${part.exchange}</b> ${part.verdict && html`<span class="tag">${visible(part.verdict)}</span>`}
            <span>${visible(part.words)}</span>
          </button>
          <${Interval} part=${part} />
          <small>effect ${percent(part.effect)}${
            part.low === null ? "" : ` [${percent(part.low)} to ${percent(part.high)}]`
          } · ${part.draws} draws · likely ${percent(part.probability)}</small>
        </li>`,
      )}
    </ol>
    <h3>how often it fails, by what is kept</h3>
    <${Curve} points=${blame.curve} />
    <ul>${blame.controls.map((line) => html`<li>${visible(line)}</li>`)}</ul>
    <p class="quiet">${visible(blame.spent)}</p>
    <${Command} command=${blame.command} />
  </section>`;
}

/** A bar from -100 % to 100 %, with its interval. @param {{part: import("./data.js").Part}} props */
function Interval({ part }) {
  if (part.effect === null) return null;
  const x = (/** @type {number} */ share) => 100 + share * 100;
  const [low, high] = [part.low ?? part.effect, part.high ?? part.effect];
  return html`<svg viewBox="0 0 200 12" class="interval" aria-hidden="true">
    <line x1="100" y1="0" x2="100" y2="12" class="zero" />
    <line x1=${x(low)} y1="6" x2=${x(high)} y2="6" class="range" />
    <circle cx=${x(part.effect)} cy="6" r="4" />
  </svg>`;
}

/** @param {{points: Blame["curve"]}} props */
function Curve({ points }) {
  if (!points.length) return null;
  const last = Math.max(1, points[points.length - 1].position);
  const x = (/** @type {number} */ position) => 24 + (position / last) * 270;
  const y = (/** @type {number} */ rate) => 110 - rate * 100;
  const line = points.map(({ position, rate }) => `${x(position)},${y(rate)}`).join(" ");
  const rows = points.map(
    (point) => html`<tr><td>${point.position}</td><td>${percent(point.rate)}</td>
      <td>${percent(point.low)} to ${percent(point.high)}</td><td>${point.draws}</td></tr>`,
  );
  return html`<svg viewBox="0 0 310 130" class="curve" aria-hidden="true">
      <line x1="24" y1="110" x2="294" y2="110" class="zero" />
      <text x="0" y="14">100 %</text><text x="0" y="113">0 %</text>
      ${points.map(
        (point) => html`<line
          class="range" x1=${x(point.position)} x2=${x(point.position)}
          y1=${y(point.low)} y2=${y(point.high)}
        />`,
      )}
      <polyline points=${line} />
      ${points.map((point) => html`<circle cx=${x(point.position)} cy=${y(point.rate)} r="3" />`)}
      <text x="24" y="126">0 kept</text><text x="294" y="126" text-anchor="end">${last} kept</text>
    </svg>
    <details><summary>the same as a table</summary><table>
      <thead><tr><th>kept</th><th>fails</th><th>interval</th><th>draws</th></tr></thead>
      <tbody>${rows}</tbody></table></details>`;
}
