import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { expectFormerLines, storeBehaviour } from "./behaviour.ts";
import { conversation, formerAudit, formerLines, pin, session } from "./samples.ts";

const root = mkdtempSync(join(tmpdir(), "toolcrib-store-"));
afterAll(() => rmSync(root, { recursive: true }));

describe("the store on SQLite", () => {
  storeBehaviour(async () => {
    const home = mkdtempSync(join(root, "home-"));
    return { open: (options = {}) => openStore({ home, ...options }) };
  });

  it("[oper-01b] tables of an earlier version get what is new, and keep what they have", async () => {
    const home = mkdtempSync(join(root, "home-"));
    const before = await openStore({ home });
    await before?.settings.set("kept", "yes");
    await before?.close();
    const db = new Sqlite(join(home, "toolcrib.db"));
    db.exec(
      "drop table conversations; drop table conversation_messages; drop table limit_spans; drop table skill_files; drop table server_lists; drop table taints; drop table call_sums; delete from migrations where version > 1",
    );
    db.exec(`${formerAudit({})}; alter table audit drop column client; create index audit_by_time on audit (time);
      alter table sessions drop column client; alter table audit_files drop column summed`);
    db.exec(
      `drop table pins;
       create table pins (scope text not null, server text not null, tool text not null, fingerprint text not null,
         definition text not null, pinned_at text not null, constraint pins_key primary key (scope, server, tool));
       insert into pins values ('/lock', 'files', 'read', 'sha256-1', '{"name":"read"}', '2026-01-01T00:00:00.000Z')`,
    );
    db.pragma("user_version = 1");
    db.close();
    const after = await openStore({ home });
    expect(await after?.settings.get("kept")).toBe("yes");
    expect(await after?.pins.list("/lock")).toEqual([pin("files", "read")]);
    await after?.pins.change("/lock", [{ ...pin("files", "read"), kind: "prompt" }], []);
    expect((await after?.pins.list("/lock"))?.map(({ kind }) => kind)).toEqual(["prompt", "tool"]);
    await after?.sessions.put([session("s", { client: { name: "cursor" } })]);
    expect((await after?.sessions.get("s"))?.client).toEqual({ name: "cursor" });
    await after?.conversations.put(conversation("a"));
    expect((await after?.conversations.list({ limit: 5 }))?.total).toBe(1);
    await after?.close();
  });

  it("[oper-01b] lines of the audit log that had a row each become blocks, and none is lost", async () => {
    const home = mkdtempSync(join(root, "home-"));
    await (await openStore({ home }))?.close();
    const db = new Sqlite(join(home, "toolcrib.db"));
    db.exec(formerAudit(formerLines()));
    db.pragma("user_version = 9");
    db.close();
    const store = await openStore({ home });
    if (store === undefined) throw new Error("no store");
    await expectFormerLines(store);
    await store.close();
  });
});
