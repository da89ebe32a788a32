import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ScannedTexts } from "../../../src/hub/pins/definition-watch.ts";
import { ConfigSchema } from "../../../src/model/config.ts";
import { openStore } from "../../../src/store/open-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const { guard } = ConfigSchema.parse({});
let home: string;
let store: Store;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "toolcrib-clean-"));
  const opened = await openStore({ home });
  if (opened === undefined) throw new Error("There is no store.");
  store = opened;
});

afterEach(async () => {
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

/** @returns The texts that were scanned. */
async function start(
  texts: Readonly<Record<string, readonly string[]>>,
  options: { readonly scanner?: string | undefined; readonly rules?: typeof guard } = {},
): Promise<string[]> {
  const { scanner, rules } = { scanner: "rules-1", rules: guard, ...options };
  const clean = await ScannedTexts.open({ store, clock: new FakeClock(), scanner, guard: rules });
  const scanned: string[] = [];
  for (const [id, findings] of Object.entries(texts)) {
    const scan = (): readonly string[] => {
      scanned.push(id);
      return findings;
    };
    expect(clean.findingsOf(id, scan)).toEqual(findings);
  }
  await clean.close();
  return scanned;
}

describe("[speed-05c] texts of servers that were found clean", () => {
  it("are not scanned again by the next hub of the home", async () => {
    expect(await start({ one: [], two: [] })).toEqual(["one", "two"]);
    expect(await start({ one: [], two: [], three: [] })).toEqual(["three"]);
    expect(await start({ one: [], two: [], three: [] })).toEqual([]);
  });

  it("do not include one in which something was found", async () => {
    await start({ one: [], bad: ["an order"] });
    expect(await start({ one: [], bad: ["an order"] })).toEqual(["bad"]);
  });

  it("are scanned again by other rules, of another build or of another config", async () => {
    await start({ one: [] });
    expect(await start({ one: [] }, { scanner: "rules-2" })).toEqual(["one"]);
    const rules = { ...guard, sensitivity: "high" } as const;
    expect(await start({ one: [] }, { scanner: "rules-2", rules })).toEqual(["one"]);
    expect(await start({ one: [] }, { scanner: "rules-2", rules })).toEqual([]);
  });

  it("are scanned again after the config has changed in a running hub", async () => {
    const clean = await ScannedTexts.open({ store, clock: new FakeClock(), scanner: "rules-1", guard });
    let scans = 0;
    const scan = (): [] => {
      scans += 1;
      return [];
    };
    clean.findingsOf("one", scan);
    clean.forget({ ...guard, sensitivity: "high" });
    clean.findingsOf("one", scan);
    clean.findingsOf("one", scan);
    expect(scans).toBe(2);
    await clean.close();
  });

  it("are all scanned where the sources run, whose rules have no name", async () => {
    await start({ one: [] }, { scanner: undefined });
    expect(await start({ one: [] }, { scanner: undefined })).toEqual(["one"]);
  });

  it("are named in a build by a file that has a hash of its rules", () => {
    const chunks = resolve(import.meta.dirname, "../../../dist/chunks");
    const holders = readdirSync(chunks).filter((file) =>
      readFileSync(join(chunks, file), "utf8").includes("definitions.clean"),
    );
    expect(holders).toEqual([expect.stringMatching(/-[\w-]{8}\.cjs$/)]);
  });
});
