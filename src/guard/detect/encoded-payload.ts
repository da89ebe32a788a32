import type { Reading } from "./reading.ts";
import { type Detector, type Suspicion, SuspicionList } from "./detector.ts";
import { backwardsText, encodedParts, turnedText } from "./decode.ts";
import { originalSpan } from "./reading.ts";
import type { Steps } from "./steps.ts";
import { suspicionsOf } from "./weigh.ts";

/** Whether a decoded text would itself be refused. Given from outside, since it is the whole table of detectors. */
type Judge = (decoded: string) => Steps<boolean>;

const PART_COST = 2_000;

/** Encoded text is suspicious when what it says is; base64 as such is not. */
export function encodedPayload(isSuspicious: Judge): Detector {
  return {
    name: "encoded payload",
    mayFind: () => true,
    *find(reading) {
      const suspicions = new SuspicionList();
      for (const part of encodedParts(reading.original)) {
        yield PART_COST;
        if (part !== undefined && (yield* isSuspicious(part.text))) suspicions.add("encoded_payload", "high", part);
      }
      const whole = yield* turned(reading, isSuspicious);
      const named = yield* suspicionsOf(reading, "encoded_payload");
      return [...suspicions.all(), ...whole, ...named];
    },
  };
}

/** Rot13 and reversal keep the shape of a text, so the lines that hold it are the span. */
function* turned(reading: Reading, isSuspicious: Judge): Steps<Suspicion[]> {
  const suspicions = new SuspicionList();
  const { rotated, backwards } = reading.sifted;
  for (const turn of [...(rotated ? [turnedText] : []), ...(backwards ? [backwardsText] : [])]) {
    yield reading.normal.text.length;
    const whole = turn(reading.normal.text);
    if (whole === undefined || !(yield* isSuspicious(whole))) continue;
    let start = 0;
    for (const line of reading.normal.text.split("\n")) {
      const plain = line.length > 3 ? turn(line) : undefined;
      if (plain !== undefined)
        suspicions.add("encoded_payload", "high", originalSpan(reading, start, start + line.length));
      start += line.length + 1;
    }
  }
  return suspicions.all();
}
