import { type Detector, severityOf, type Suspicion, SuspicionList } from "./detector.ts";
import { gluedMatches, spelledMatches, unspacedMatches } from "./phrases/unspaced.ts";
import { isShown, originalSpan, type Reading } from "./reading.ts";
import type { Steps } from "./steps.ts";
import { hasPassages, suspicionsOf } from "./weigh.ts";

/** "Ignore all previous instructions", a new role, another task; also without spaces, spelled out, and in other scripts. */
export const instructionOverride: Detector = {
  name: "instruction override",
  mayFind: (reading) => hasPassages(reading) || reading.spelled || reading.sifted.unspaced,
  *find(reading) {
    const spoken = yield* suspicionsOf(reading, "instruction_override");
    return spoken.concat(yield* unspaced(reading));
  },
};

function* unspaced(reading: Reading): Steps<Suspicion[]> {
  const suspicions = new SuspicionList();
  const matches = reading.passages.flatMap(({ tokens, owns }) =>
    gluedMatches(tokens).filter(({ start, end }) => owns(start, end)),
  );
  yield matches.length;
  if (reading.spelled) matches.push(...(yield* spelledMatches(reading.normal.text)));
  if (reading.sifted.unspaced) matches.push(...(yield* unspacedMatches(reading.normal.text)));
  for (const match of matches) {
    const shown = isShown(reading, match.start, match.end);
    const severity = severityOf(shown && reading.topic >= 2 ? 4 : match.weight - (shown ? 2 : 0));
    suspicions.add("instruction_override", severity, originalSpan(reading, match.start, match.end));
  }
  return suspicions.all();
}
