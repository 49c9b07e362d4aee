// While the page is printed, lists have more rows than the screen shows.
import { options } from "preact";
import { useEffect, useState } from "preact/hooks";

/** The most rows of a list on paper. */
export const PRINTED = 2000;

/** Return whether the page is being printed now. */
export function usePrinting() {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    // The browser prints what stands there when the event ends: draw at once, not in the next task.
    const draw = (/** @type {boolean} */ on) => () => {
      const before = options.debounceRendering;
      options.debounceRendering = (now) => now();
      setPrinting(on);
      options.debounceRendering = before;
    };
    const [begins, ends] = [draw(true), draw(false)];
    addEventListener("beforeprint", begins);
    addEventListener("afterprint", ends);
    return () => {
      removeEventListener("beforeprint", begins);
      removeEventListener("afterprint", ends);
    };
  }, []);
  return printing;
}
