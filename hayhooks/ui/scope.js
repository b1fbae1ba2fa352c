// What a question is limited to: books and chapters, for this tab.

import { kept } from "./dom.js";

/** The limit of the next question: `sources` and `sections` by name, both empty for the whole library. */
export const scope = () => kept("scope") ?? { sources: [], sections: [] };

/** Ask only in these, and go to the question. */
export function limitTo(limit) {
  kept("scope", limit);
  location.hash = "#/ask";
}

/** Ask everywhere again. */
export const unlimited = () => kept("scope", null);
