import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { missingPostgres, type Postgres, startPostgres } from "../support/postgres.ts";
import { isMissing } from "../support/skips.ts";

const missing = missingPostgres();
isMissing("an unreachable PostgreSQL", missing);
const WITHIN = { timeout: 60_000, interval: 20 };

describe.skipIf(missing !== undefined)("[scale-09d] a database that cannot be reached", () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres?.stop());

  it("is the store's trouble until it answers again", async () => {
    const url = await postgres.freshUrl();
    const home = mkdtempSync(join(tmpdir(), "toolcrib-reach-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    const store = (await openStore({ home, url })) ?? expect.fail("no store");
    onTestFinished(() => store.close());
    onTestFinished(store.follow(() => {}));
    const admin = await postgres.connect(url);
    onTestFinished(() => admin.end());
    await vi.waitFor(async () => {
      const { rows } = await admin.query("select 1 from pg_stat_activity where query = 'listen toolcrib'");
      expect(rows).toHaveLength(1);
    }, WITHIN);
    expect(store.trouble).toBeUndefined();
    await admin.query("alter role toolcrib nologin");
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'toolcrib' and pid <> pg_backend_pid()",
    );
    await vi.waitFor(() => expect(store.trouble).toContain("cannot be reached"), WITHIN);
    expect(store.trouble).not.toContain("correct-horse");
    // The first may still meet a connection that was cut off.
    await vi.waitFor(() => expect(store.settings.get("any")).rejects.toMatchObject({ code: "invalid_config" }), WITHIN);
    expect(store.trouble).toBeDefined();
    await admin.query("alter role toolcrib login");
    // By itself, although nobody asks the store for anything.
    await vi.waitFor(() => expect(store.trouble).toBeUndefined(), WITHIN);
  });
});
