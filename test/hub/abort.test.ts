import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { linkSignals } from "../../src/hub/abort.ts";

it("aborts with the reason of whichever source aborts first", () => {
  const first = new AbortController();
  const second = new AbortController();
  const link = linkSignals([first.signal, undefined, second.signal]);
  expect(link.signal.aborted).toBe(false);
  second.abort("enough");
  expect(link.signal).toMatchObject({ aborted: true, reason: "enough" });
});

it("is aborted from the start when a source already is", () => {
  const later = new AbortController();
  const link = linkSignals([AbortSignal.abort("before"), later.signal]);
  expect(link.signal).toMatchObject({ aborted: true, reason: "before" });
  expect(getEventListeners(later.signal, "abort")).toHaveLength(0);
});

it("[spine-11d] leaves no listener behind", () => {
  const { signal } = new AbortController();
  for (let n = 0; n < 100; n++) {
    const link = linkSignals([signal]);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    link.dispose();
  }
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});
