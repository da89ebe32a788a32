import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { Housekeeping, HubHeartbeats } from "../../../src/hub/activity/housekeeping.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { conversation } from "../../store/samples.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const DAY_MS = 24 * 60 * 60_000;
const home = mkdtempSync(join(tmpdir(), "toolcrib-housekeeping-"));
afterAll(() => rmSync(home, { recursive: true }));

it("[agent-09a] conversations are forgotten ninety days after their last use, with what was sealed for them", async () => {
  const clock = new FakeClock();
  const store = await openStore({ home, clock });
  if (store === undefined) throw new Error("no store");
  const daysAgo = (days: number): string => new Date(clock.now() - days * DAY_MS).toISOString();
  await store.conversations.put(conversation("old", { createdAt: daysAgo(300), updatedAt: daysAgo(91) }));
  await store.conversations.put(conversation("used", { createdAt: daysAgo(300), updatedAt: daysAgo(89) }));
  const sealed = { nonce: "", ciphertext: "", tag: "", keyId: "", updatedAt: daysAgo(2) };
  for (const name of ["sessions/old/servers", "sessions/used/servers", "servers/old/env", "mine"]) {
    await store.sealed.put({ ...sealed, name });
  }
  await store.sealed.put({ ...sealed, name: "sessions/begun/servers", updatedAt: daysAgo(0) });
  const onProblem = (error: unknown): never => {
    throw error;
  };
  const hubs = new HubHeartbeats({ store, hub: "this", clock, onProblem });
  const housekeeping = new Housekeeping({ store, hubs, clock, onProblem });
  await housekeeping.begin();
  expect((await store.conversations.list({ limit: 9 })).entries.map(({ id }) => id)).toEqual(["used"]);
  // With it go the keys of its servers, and nobody else's.
  expect((await store.sealed.names()).toSorted()).toEqual([
    "mine",
    "servers/old/env",
    "sessions/begun/servers",
    "sessions/used/servers",
  ]);
  await housekeeping.end();
  await store.close();
});
