/** Hubs on one store, with tools of their own, for tests of what they remember. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { openStore } from "../../../src/store/open-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { FakeClock } from "../../support/fake-clock.ts";

export interface Place {
  readonly home: string;
  readonly clock: FakeClock;
  readonly store: Store;
  hub(config?: ConfigInput, options?: HubOptions): Promise<Hub>;
}

export async function place(): Promise<Place> {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-activity-"));
  const clock = new FakeClock();
  const store = await openStore({ home: dir, clock });
  if (store === undefined) throw new Error("no store");
  const hubs: Hub[] = [];
  onTestFinished(async () => {
    for (const hub of hubs) await hub.close();
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return {
    home: dir,
    clock,
    store,
    async hub(config = {}, options = {}) {
      const hub = await createHub(config, { home: dir, clock, registry: tools(), store, ...options });
      hubs.push(hub);
      return hub;
    },
  };
}

export function tools(): ToolRegistry {
  const registry = new ToolRegistry();
  for (const name of ["pay", "look"]) {
    registry.register({
      name,
      description: `To ${name}.`,
      parameters: { type: "object" },
      execute: async () => ({ content: [{ type: "text", text: name }] }),
    });
  }
  return registry;
}
