import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { callSignal } from "../../../src/hub/call/call-pipeline.ts";
import { Session } from "../../../src/sessions/session.ts";

it("aborts with the reason of the caller's signal, or when the session closes", () => {
  const session = new Session();
  const caller = new AbortController();
  const [first, second] = [callSignal(caller.signal, session), callSignal(undefined, session)];
  caller.abort("enough");
  expect(first.signal).toMatchObject({ aborted: true, reason: "enough" });
  expect(second.signal.aborted).toBe(false);
  session.close();
  expect(second.signal.aborted).toBe(true);
});

it("is aborted from the start when the caller has given up or the session is closed", () => {
  const session = new Session();
  expect(callSignal(AbortSignal.abort("before"), session).signal).toMatchObject({ aborted: true, reason: "before" });
  expect(session.running.size).toBe(0);
  session.close();
  const later = new AbortController();
  expect(callSignal(later.signal, session).signal.aborted).toBe(true);
  expect(getEventListeners(later.signal, "abort")).toHaveLength(0);
});

it("[spine-11d] leaves no listener behind", () => {
  const session = new Session();
  const { signal } = new AbortController();
  for (let n = 0; n < 100; n++) {
    const call = callSignal(signal, session);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    expect(session.running.size).toBe(1);
    call.dispose();
  }
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
  expect(session.running.size).toBe(0);
});
