import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import { misbehaving, type Workspace, workspace } from "./run-cli.ts";

function configured(rest: Record<string, unknown> = {}): Workspace {
  const place = workspace();
  place.configure({ files: misbehaving("ok") }, { roles: { dev: {} }, ...rest });
  return place;
}

describe("[joy-03g] toolcrib policy", () => {
  it("shows the diff and its effect, and writes the rule", async () => {
    const place = configured();
    const before = place.read("toolcrib.json");
    const planned = await place.runHere(["policy", "deny", "files__echo", "--dry-run"]);
    expect(planned.stdout).toMatch(/^\+ .*"files__echo"/m);
    expect(planned.stdout).toContain("Without a role: 1 tool fewer.");
    expect(place.read("toolcrib.json")).toBe(before);
    expect((await place.runHere(["policy", "deny", "files__echo"])).code).toBe(0);
    expect(JSON.parse(place.read("toolcrib.json"))).toMatchObject({ tools: { deny: ["files__echo"] } });
    const explained = await place.runHere(["policy", "explain", "files__echo", "--json"]);
    expect(explained.json()).toMatchObject({ decision: { verdict: "deny" } });
    await place.runHere(["policy", "ask", "files__*", "--role", "dev"]);
    expect(JSON.parse(place.read("toolcrib.json"))).toMatchObject({ roles: { dev: { tools: { ask: ["files__*"] } } } });
    const still = await place.runHere(["policy", "allow", "files__echo", "--role", "dev"]);
    expect(still.stderr).toContain(`files__echo is still decided as deny`);
    const reset = await place.runHere(["policy", "reset", "files__echo", "--json"]);
    expect(reset.json()).toMatchObject({ saved: true });
    expect((await place.runHere(["policy", "deny"])).code).toBe(2);
  });

  it("warns of a rule for a name that no tool has", async () => {
    const place = configured();
    const mistyped = await place.runHere(["policy", "deny", "files__ecoh", "files__echo", "nothing__*", "--dry-run"]);
    expect(mistyped.stderr).toContain("No tool is called files__ecoh now; did you mean files__echo?");
    expect(mistyped.stderr.match(/No tool is called/g)).toHaveLength(1);
    const other = await place.runHere(["policy", "ask", "zzz__qqq", "--json"]);
    expect(other.json()).toMatchObject({ saved: true, notes: ["No tool is called zzz__qqq now."] });
  });
});

describe("[joy-03f] toolcrib token", () => {
  it("makes a token that the running hub admits, notes its use, and refuses once it is revoked", async () => {
    const place = configured();
    place.start(["serve", "--config", place.configFile, "--port", "0"], { open: true });
    await expect.poll(() => readHubRecords(place.home).length).toBe(1);
    const [record] = readHubRecords(place.home);
    const url = `${record?.url ?? ""}/api/v1/mcp/tools`;
    const status = async (token?: string): Promise<number> =>
      (await fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await status()).toBe(200);
    const made = await place.runHere(["token", "add", "laptop", "--user", "ada"]);
    expect(made).toMatchObject({ code: 0 });
    expect(made.stderr).toContain("http.auth is new");
    const token = made.stdout.trim().split("\n").at(-1) ?? "";
    expect(token).toMatch(/^tc_[\w-]{43}$/);
    expect(readFileSync(place.configFile, "utf8")).not.toContain(token);
    expect([await status(token), await status(), await status(`${token}x`)]).toEqual([200, 401, 401]);
    await vi.waitFor(async () => {
      const [listed] = (await place.runHere(["token", "list", "--json"])).json<
        { name: string; lastUsed: string | null }[]
      >();
      expect(listed).toMatchObject({
        name: "laptop",
        user: "ada",
        stored: "digest",
        lastUsed: expect.any(String) as string,
      });
    }, 30_000);
    const second = (await place.runHere(["token", "add", "ci", "--scopes", "read", "--json"])).json<{
      token: string;
    }>();
    // With http.auth, a command without a token of the scope admin works alone, and the hub notices the changed file.
    await expect.poll(() => status(second.token)).toBe(200);
    await place.runHere(["token", "revoke", "laptop"]);
    await expect.poll(() => status(token)).toBe(401);
    expect(await status(second.token)).toBe(200);
  });
});
