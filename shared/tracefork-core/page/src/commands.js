// The commands that do in a terminal what the page shows.

/** @typedef {import("./data.js").Run} Run */
/** @typedef {import("./place.js").Place} Place */

/** @param {Run} run */
function quoted({ name }) {
  return /[^\w./-]/.test(name) ? `'${name.replaceAll("'", "'\\''")}'` : name;
}

/** Show an exchange, or compare it. @param {Run[]} runs @param {Place} place */
export function showing(runs, { run, step, part, other, otherRun }) {
  const shown = `tracefork show ${quoted(runs[run])} ${step}`;
  if (part !== "diff") return shown;
  const tape = otherRun === run ? "" : `${quoted(runs[otherRun])} `;
  return `${shown} --against ${tape}${other}`;
}

/** Fork at an exchange. @param {Run[]} runs @param {Place} place */
export function forking(runs, { run, step }) {
  return `tracefork fork ${quoted(runs[run])} --at ${step}`;
}
