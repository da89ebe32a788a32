import { type Detector, SuspicionList } from "./detector.ts";
import { eachMatch } from "./matches.ts";

const ANY = /[\u202a-\u202e\u2066-\u2069]/;
/** From a control to its end, the end of the line, or 400 characters. */
const OVERRIDDEN = /[\u202d\u202e]([^\u202c\u2069\n]{0,400})/g;
const EMBEDDED = /[\u202b\u2067]([^\u202c\u2069\n]{0,400})/g;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

/**
 * Controls that make a text read differently from how it is stored. Marks and isolates belong to honest Arabic and
 * Hebrew text and to formatted messages; overrides of Latin letters belong to no text.
 */
export const bidiText: Detector = {
  name: "bidi text",
  mayFind: ({ normal }) => normal.removed,
  *find({ original }) {
    if (!ANY.test(original)) return [];
    const suspicions = new SuspicionList();
    yield* eachMatch(OVERRIDDEN, original, ({ 0: found, 1: inner = "" }, index) => {
      const letters = inner.match(/[A-Za-z]/g)?.length ?? 0;
      // A left-to-right override around a telephone number is what address books write.
      if (letters === 0) return;
      const severity = found.startsWith("\u202e") && letters >= 3 ? "high" : letters >= 3 ? "medium" : "low";
      suspicions.add("bidi_text", severity, { start: index, end: index + found.length });
    });
    const mixed = RIGHT_TO_LEFT.test(original);
    yield* eachMatch(EMBEDDED, original, ({ 0: found, 1: inner = "" }, index) => {
      const letters = inner.match(/[A-Za-z]/g)?.length ?? 0;
      if (letters < 3 || RIGHT_TO_LEFT.test(inner)) return;
      suspicions.add("bidi_text", mixed ? "low" : "medium", { start: index, end: index + found.length });
    });
    return suspicions.all();
  },
};
