import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CheckedReference } from "../../src/cli/commands/secrets.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { ServerInfo } from "../../src/model/server-state.ts";
import { filesUnder } from "../canary/canaries.ts";
import { misbehaving, type Workspace, workspace } from "./run-cli.ts";

const SECRET = "canary-of-the-command-line";

async function addServer(place: Workspace, id: string, entry: Record<string, unknown>): Promise<void> {
  const hub = await createHub(place.configFile, { home: place.home, connect: "none" });
  await hub.servers.add(id, entry);
  await hub.close();
}

describe("[oper-02a] servers of the store at the command line", () => {
  it("are listed, say where they came from, and are used", async () => {
    const place = workspace();
    place.configure({ own: { ...misbehaving("ok"), autoConnect: false } });
    expect((await place.runHere(["status"])).stdout).toMatch(/^own .* \S+toolcrib\.json /m);
    // No database is made by looking.
    expect(existsSync(join(place.home, "toolcrib.db"))).toBe(false);

    await addServer(place, "added", misbehaving("ok"));
    const status = await place.runHere(["status", "--json"]);
    expect(status.json<ServerInfo[]>().map(({ id, origin }) => [id, origin])).toEqual([
      ["own", { file: place.configFile, dialect: "toolcrib" }],
      ["added", { file: join(place.home, "toolcrib.db"), dialect: "store" }],
    ]);
    expect((await place.runHere(["status"])).stdout).toMatch(/^added +ready .* ms +store$/m);
    expect((await place.run(["call", "added__echo", "text=hello"])).stdout).toBe("hello\n");
    const file = join(place.home, "toolcrib.db");
    const disabled = await place.runHere(["disable", "added"]);
    expect(disabled.stdout).toBe(`Disabled added in ${file}\n`);
    expect((await place.runHere(["list"])).stdout).not.toContain("added__");
    const shown = await place.runHere(["enable", "added", "--dry-run", "--json"]);
    expect(shown.json()).toMatchObject({
      id: "added",
      file,
      changed: true,
      diff: expect.arrayContaining(['-   "enabled": false']),
    });
    const removed = await place.runHere(["remove", "added", "--json"]);
    expect(removed.json()).toEqual({ id: "added", file, changed: true });
    const audit = await place.runHere(["audit"]);
    expect(audit.stdout).toMatch(/server\.removed added +-/);
  });

  it("are started by doctor, which tells of a broken one", async () => {
    const place = workspace();
    place.configure({});
    await addServer(place, "broken", { command: "toolcrib-no-such-program" });
    const doctor = await place.runHere(["doctor", "--json"]);
    expect(doctor.code).toBe(1);
    expect(doctor.json<{ checks: object[] }>().checks).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          area: "store",
          message: expect.stringMatching(/toolcrib\.db: 1 server, 1 enabled$/),
        }),
        expect.objectContaining({ server: "broken", status: "fail" }),
      ]),
    );
  });
});

describe("[oper-02d] secrets set store/NAME", () => {
  it("encrypts a value into the store, for servers to refer to, and check finds it", async () => {
    const place = workspace();
    place.configure({});
    const set = await place.run(["secrets", "set", "store/API_TOKEN", "--stdin", "--json"], { input: `${SECRET}\n` });
    expect(set.json()).toEqual({ name: "API_TOKEN", stored: "store", reference: "secret://store/API_TOKEN" });
    expect(filesUnder(place.home)).not.toContain(SECRET);

    await addServer(place, "added", { ...misbehaving("ok"), env: { API_TOKEN: "secret://store/API_TOKEN" } });
    const check = await place.runHere(["secrets", "check", "--json"]);
    expect(check.json<CheckedReference[]>()).toEqual([
      {
        reference: "secret://store/API_TOKEN",
        provider: "store",
        found: true,
        length: SECRET.length,
        usedIn: ["added: env.API_TOKEN"],
      },
    ]);
    expect(check.stdout + check.stderr + filesUnder(place.home)).not.toContain(SECRET);
    // As `serve` does with the tokens of `http.auth`.
    const hub = await createHub(place.configFile, { home: place.home, connect: "none" });
    expect(await hub.internals.resolve("secret://store/API_TOKEN")).toBe(SECRET);
    await hub.close();
    const user = await place.runHere(["secrets", "set", "store/X", "--user", "me", "--stdin", "--json"]);
    expect(user.json()).toMatchObject({ error: { code: "invalid_arguments" } });
  });
});
