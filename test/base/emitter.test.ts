import { expect, it } from "vitest";
import { Emitter } from "../../src/base/emitter.ts";

it("takes several listeners at once and removes them together", () => {
  const events = new Emitter<{ opened: string; closed: number; other: undefined }>();
  const seen: unknown[] = [];
  const stop = events.listen({ opened: (name) => seen.push(name), closed: (code) => seen.push(code) });
  events.emit("opened", "a");
  events.emit("closed", 1);
  events.emit("other", undefined);
  stop();
  events.emit("opened", "b");
  events.emit("closed", 2);
  expect(seen).toEqual(["a", 1]);
});
