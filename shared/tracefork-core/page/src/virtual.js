// A long list of which only the visible rows exist. On paper it has as many rows as paper can bear.
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks";
import { PRINTED, usePrinting } from "./printing.js";

/**
 * A list to choose from (`onpick`), or a feed of articles to read.
 * @param {object} props
 * @param {number} props.count
 * @param {number} props.height The height of a row, or an estimate of it.
 * @param {number} props.current The row to keep in sight.
 * @param {string} props.label
 * @param {string} props.name A prefix for the ids of rows.
 * @param {(i: number) => any} props.row
 * @param {(i: number) => void} [props.onpick]
 */
export function VirtualList({ count, height, current, label, name, row, onpick }) {
  const [, redraw] = useReducer((/** @type {number} */ n) => n + 1, 0);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const printing = usePrinting();
  const list = useMemo(
    () =>
      new Virtualizer({
        count,
        getScrollElement: () => box.current,
        estimateSize: () => height,
        overscan: 12,
        scrollToFn: elementScroll,
        observeElementRect,
        observeElementOffset,
        onChange: () => redraw(0),
      }),
    [],
  );
  list.setOptions({ ...list.options, count });
  useEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => list._willUpdate());
  useEffect(() => {
    if (current >= 0 && current < count) list.scrollToIndex(current, { align: "auto" });
  }, [current, current < count]);
  const some = printing
    ? Array.from({ length: Math.min(count, PRINTED) }, (_, index) => ({ index, start: 0 }))
    : list.getVirtualItems();
  const chosen = some.some(({ index }) => index === current) ? `${name}${current}` : null;
  return html`<div
    class="list"
    role=${onpick ? "listbox" : "feed"}
    tabindex="0"
    aria-label=${label}
    aria-activedescendant=${onpick ? chosen : null}
    ref=${box}
  >
    <div class="all" ref=${(/** @type {HTMLElement | null} */ all) => {
      all?.style.setProperty("height", `${list.getTotalSize()}px`);
    }}>
      ${some.map(
        ({ index, start }) => html`<div
          key=${index}
          id=${`${name}${index}`}
          class=${`${onpick ? "row" : "entry"}${index === current ? " current" : ""}`}
          role=${onpick ? "option" : "article"}
          aria-selected=${onpick ? index === current : null}
          aria-setsize=${count}
          aria-posinset=${index + 1}
          data-index=${index}
          ref=${(/** @type {HTMLElement | null} */ element) => {
            element?.style.setProperty("transform", `translateY(${start}px)`);
            if (element && !printing) list.measureElement(element);
          }}
          onClick=${onpick && (() => onpick(index))}
        >${row(index)}</div>`,
      )}
    </div>
    ${
      printing &&
      count > PRINTED &&
      html`<p>first ${PRINTED.toLocaleString("en")} of ${count.toLocaleString("en")} rows printed</p>`
    }
  </div>`;
}
