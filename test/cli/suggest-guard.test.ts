import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { suggestGuard } from "../../src/cli/suggest-guard.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { ConfigInput } from "../../src/model/config.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "toolcrib-suggest-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function said(config: ConfigInput): Promise<string[]> {
  await using hub = await createHub({ store: "sqlite", ...config }, { home });
  const told: string[] = [];
  await suggestGuard(hub, (message) => told.push(message));
  return told;
}

describe("[guard-20g] the guard is suggested", () => {
  it("once for each home, where the config says nothing about it", async () => {
    expect(await said({ guard: "watch" })).toEqual([]);
    expect(await said({ guard: { taint: "ask" } })).toEqual([]);
    expect(await said({})).toEqual([expect.stringContaining('"guard": "balanced"')]);
    expect(await said({})).toEqual([]);
  });
});
