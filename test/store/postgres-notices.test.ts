import { EventEmitter } from "node:events";
import type { Client } from "pg";
import { expect, it } from "vitest";
import { listenForChanges } from "../../src/store/postgres-engine.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

/** A connection that may die without a sign. */
class Connection extends EventEmitter {
  isDead = false;
  hasEnded = false;
  asked: string[] = [];

  query(text: string): Promise<void> {
    this.asked.push(text);
    return this.isDead ? new Promise(() => {}) : Promise.resolve();
  }

  async end(): Promise<void> {
    this.hasEnded = true;
  }
}

it("[scale-09d] a listening connection that died without a sign is noticed soon, told of, and replaced", async () => {
  const clock = new ManualClock();
  const made: Connection[] = [];
  const told: string[] = [];
  let looks = 0;
  const stop = listenForChanges({
    async connect() {
      const connection = new Connection();
      made.push(connection);
      // Of a client no more is used here.
      return connection as unknown as Client;
    },
    clock,
    look: () => (looks += 1),
    onListening: () => told.push("listening"),
    onFailure: (error) => told.push(String(error)),
  });
  await clock.advance(60_000);
  const [first] = made;
  expect([made.length, first?.asked.length ?? 0, told]).toEqual([1, 13, ["listening"]]);
  if (first !== undefined) first.isDead = true;
  const before = looks;
  await clock.advance(12_000);
  expect(told).toEqual(["listening", "Error: Connection terminated after a timeout", "listening"]);
  expect([made.length, first?.hasEnded, looks - before]).toEqual([2, true, 1]);
  stop();
  expect(clock.pending).toBe(0);
  expect(made[1]?.hasEnded).toBe(true);
});
