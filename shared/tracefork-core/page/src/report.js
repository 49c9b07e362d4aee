// A report: the page with all of its data in it.
import { html, render } from "htm/preact";
import { App } from "./app.js";
import { Store } from "./store.js";

/** @param {HTMLElement} main */
export function mountReport(main) {
  try {
    const store = new Store(document, JSON.parse(document.getElementById("report")?.textContent ?? ""));
    main.replaceChildren();
    render(html`<${App} store=${store} />`, main);
  } catch (error) {
    main.textContent = `This report cannot be read: ${error instanceof Error ? error.message : error}`;
  }
}
