import { describe, expect, it } from "vitest";
import { type Passage, passagesAround } from "../../../src/guard/detect/passage.ts";

/** With a bound, because what is tested is that it ends. */
function passages(text: string, places: readonly number[]): Passage[] {
  const steps = passagesAround(text, places);
  for (let step = 0; step < 1000; step += 1) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
  throw new Error("it does not end");
}

describe("[guard-19b] passages around places", () => {
  it.each(["'vector-push', ", "'values-list',\n "])("reach the place behind any number of %j", (word) => {
    for (const count of [30, 60, 100, 200, 400]) {
      const text = `${word.repeat(count)}'write-string', `;
      const place = text.lastIndexOf("write-string");
      expect(passages(text, [place]).map((passage) => passage.owns(place, place + 1))).toEqual([true]);
    }
  });
});
