// A list of tabs: one stop for the Tab key, and arrows between them.
import { html } from "htm/preact";

/**
 * @param {{label: string, name: string, tabs: [string, string][], chosen: string,
 *   onchoose: (tab: string) => void}} props
 */
export function Tabs({ label, name, tabs, chosen, onchoose }) {
  const typed = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = tabs.findIndex(([tab]) => tab === chosen);
    const [next] = tabs[(at + by + tabs.length) % tabs.length];
    event.preventDefault();
    onchoose(next);
    document.getElementById(`${name}-${next}`)?.focus();
  };
  return html`<div role="tablist" class="tabs" aria-label=${label} onKeyDown=${typed}>
    ${tabs.map(
      ([tab, words]) => html`<button
        role="tab"
        key=${tab}
        id=${`${name}-${tab}`}
        aria-selected=${tab === chosen}
        aria-controls=${`${name}-panel`}
        tabindex=${tab === chosen ? 0 : -1}
        onClick=${() => onchoose(tab)}
      >${words}</button>`,
    )}
  </div>`;
}
