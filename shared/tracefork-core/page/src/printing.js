// While the page is printed, lists have more rows than the screen shows.
import { useEffect, useState } from "preact/hooks";

/** The most rows of a list on paper. */
export const PRINTED = 2000;

/** Return whether the page is being printed now. */
export function usePrinting() {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const begins = () => setPrinting(true);
    const ends = () => setPrinting(false);
    addEventListener("beforeprint", begins);
    addEventListener("afterprint", ends);
    return () => {
      removeEventListener("beforeprint", begins);
      removeEventListener("afterprint", ends);
    };
  }, []);
  return printing;
}
