import { expect, it } from "vitest";
import { CancelController } from "../../src/base/cancel.ts";

it("Cancel calls each listener once, and none that was removed", () => {
  const cancel = new CancelController();
  const called: string[] = [];
  const removed = (): void => void called.push("removed");
  cancel.addEventListener("abort", () => {
    called.push("first");
    cancel.removeEventListener("abort", removed);
  });
  cancel.addEventListener("abort", () => called.push("second"));
  cancel.addEventListener("abort", removed);
  cancel.removeEventListener("abort", removed);
  expect(cancel.aborted).toBe(false);
  cancel.abort();
  cancel.abort();
  expect([cancel.aborted, called]).toEqual([true, ["first", "second"]]);
});
