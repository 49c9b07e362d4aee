// A long list of which only the visible rows exist.
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks";

/**
 * @param {object} props
 * @param {number} props.count
 * @param {number} props.height The height of a row, or an estimate of it.
 * @param {boolean} [props.measured] Whether rows have different heights.
 * @param {number} props.current The row to keep in sight.
 * @param {string} props.label
 * @param {string} props.name A prefix for the ids of rows.
 * @param {(i: number) => any} props.row
 * @param {(i: number) => void} props.onpick
 */
export function VirtualList({ count, height, measured, current, label, name, row, onpick }) {
  const [, redraw] = useReducer((/** @type {number} */ n) => n + 1, 0);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
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
  }, [current, count]);
  const rows = list.getVirtualItems();
  return html`<div
    class="list"
    role="listbox"
    tabindex="0"
    aria-label=${label}
    aria-activedescendant=${rows.some(({ index }) => index === current) ? `${name}${current}` : null}
    ref=${box}
  >
    <div class="all" ref=${(/** @type {HTMLElement | null} */ all) => {
      all?.style.setProperty("height", `${list.getTotalSize()}px`);
    }}>
      ${rows.map(
        ({ index, start, key }) => html`<div
          key=${key}
          id=${`${name}${index}`}
          class=${`row${index === current ? " current" : ""}`}
          role="option"
          aria-selected=${index === current}
          aria-setsize=${count}
          aria-posinset=${index + 1}
          data-index=${index}
          ref=${(/** @type {HTMLElement | null} */ element) => {
            element?.style.setProperty("transform", `translateY(${start}px)`);
            if (measured && element) list.measureElement(element);
          }}
          onClick=${() => onpick(index)}
        >${row(index)}</div>`,
      )}
    </div>
  </div>`;
}
