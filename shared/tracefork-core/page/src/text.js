// Text of a run is data: controls that would hide, turn or forge text are shown as their code points.

// Controls but tab and line feed, soft hyphens, zero-width and bidirectional marks, tags, lone
// surrogates.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\u{e0000}-\u{e007f}\ud800-\udfff]/gu;

/**
 * Spell what a reader could not see.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HIDDEN, (char) => {
    const point = /** @type {number} */ (char.codePointAt(0));
    return `⟦U+${point.toString(16).toUpperCase().padStart(4, "0")}⟧`;
  });
}

/** @param {number} count @param {string} noun @param {string} [plural] */
export function several(count, noun, plural) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : (plural ?? `${noun}s`)}`;
}

/** @param {number} milliseconds */
export function duration(milliseconds) {
  if (milliseconds < 0) return "—";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 120_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

/** @param {number} count */
export function tokens(count) {
  if (count < 0) return "";
  return count < 1000 ? String(count) : `${(count / 1000).toFixed(1)}k`;
}

/** Costs are millionths of a dollar. @param {number} cost */
export function money(cost) {
  if (cost < 0) return "";
  return cost === 0 ? "$0" : `$${(cost / 1e6).toFixed(4)}`;
}

/** @param {number} characters */
export function size(characters) {
  if (characters < 1000) return `${characters} characters`;
  if (characters < 1e6) return `${(characters / 1e3).toFixed(1)} thousand characters`;
  return `${(characters / 1e6).toFixed(1)} million characters`;
}

/** @param {number} count */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(0)} KB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}
