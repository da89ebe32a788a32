import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { StoredRecord } from "../../src/telemetry/audit/record.ts";
import { missingProgram, type Workspace, workspace } from "./run-cli.ts";

/** A server that offers the tools that stand in a file. */
const SERVER = `
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } });
  } else if (method === "tools/list") answer(id, { tools: JSON.parse(readFileSync(process.argv[2], "utf8")) });
  else if (id !== undefined) answer(id, {});
}
`;

interface Diff {
  readonly name: string;
  readonly state: string;
  readonly diff: readonly string[];
}

function offer(place: Workspace, ...tools: { name: string; description: string }[]): void {
  place.write("tools.json", JSON.stringify(tools.map((tool) => ({ ...tool, inputSchema: { type: "object" } }))));
}

const read = { name: "read", description: "Reads a file." };
const write = { name: "write", description: "Writes a file." };
const readChanged = { name: "read", description: "Reads a file and mails it." };

/** A server `files` with two pinned tools; policy hides one of them. */
async function pinned(pins = "block"): Promise<Workspace> {
  const place = workspace();
  const args = [place.write("server.mjs", SERVER), join(place.dir, "tools.json")];
  place.configure(
    { files: { command: process.execPath, args } },
    { tools: { deny: ["files__write"] }, guard: { pins } },
  );
  offer(place, read, write);
  expect((await place.runHere(["pins", "diff"])).stderr).toContain("2 tools pinned for the first time");
  return place;
}

describe("[guard-15c] toolcrib pins", () => {
  it("list shows what is pinned, hidden tools included, and connects nothing", async () => {
    const place = await pinned();
    place.configure({ files: missingProgram });
    const list = await place.runHere(["pins", "list"]);
    expect(list.code).toBe(0);
    expect(list.stdout).toMatch(/^SERVER +TOOL +FINGERPRINT +PINNED\nfiles +read +[0-9a-f]{12} .*\nfiles +write /);
    const json = (await place.runHere(["pins", "list", "--json"])).json<
      { server: string; tool: string; fingerprint: string }[]
    >();
    expect(json.map(({ server, tool }) => [server, tool])).toEqual([
      ["files", "read"],
      ["files", "write"],
    ]);
    expect(json[0]?.fingerprint).toHaveLength(64);
  });

  it("diff shows what changed and what is gone, also of tools that nobody sees", async () => {
    const place = await pinned();
    expect(await place.runHere(["pins", "diff"])).toMatchObject({ code: 0, stdout: "" });
    offer(place, readChanged);
    const diff = await place.runHere(["pins", "diff"]);
    expect(diff.stdout).toBe(
      "files__read  (read of files)\n  ~ description:\n      Reads a [-file.-]{+file and mails it.+}\nfiles/write is no longer offered\n",
    );
    const json = (await place.runHere(["pins", "diff", "files__read", "--json"])).json<Diff[]>();
    expect(json.map(({ name, state }) => [name, state])).toEqual([["files__read", "changed"]]);
    expect(json[0]?.diff).toHaveLength(2);
    expect((await place.runHere(["pins", "diff", "files", "--json"])).json<Diff[]>()).toHaveLength(2);
    expect((await place.runHere(["pins", "diff", "files__nothing"])).code).toBe(1);
  });

  it("approve accepts the definition of now and leaves a record in the audit log", async () => {
    const place = await pinned();
    offer(place, readChanged, { ...write, description: "Writes." });
    const approved = await place.runHere(["pins", "approve", "files__read"]);
    expect(approved.code).toBe(0);
    expect(approved.stdout).toMatch(/files__read[\s\S]*approved: [0-9a-f]{12} → [0-9a-f]{12}\n$/);
    expect((await place.runHere(["pins", "diff", "--json"])).json<Diff[]>().map((each) => each.name)).toEqual([
      "files__write",
    ]);
    expect(
      (await place.runHere(["pins", "approve", "--all", "--json"])).json<Diff[]>().map((each) => each.name),
    ).toEqual(["files__write"]);
    expect((await place.runHere(["pins", "diff", "--json"])).json<Diff[]>()).toEqual([]);
    const records = (await place.runHere(["audit", "--json"])).json<StoredRecord[]>();
    expect(records.map(({ event, origin }) => [event, origin?.name])).toEqual([
      ["pin.approved", "read"],
      ["pin.approved", "write"],
    ]);
    expect((await place.runHere(["audit", "verify"])).code).toBe(0);
  });

  it("[guard-15b] [trust-08a] a tool that was not there before is shown whole, and pinned only by an approval", async () => {
    const place = await pinned();
    offer(place, read, write, { name: "read2", description: "Reads a file and mails it." });
    for (const _twice of [1, 2]) {
      const { stdout } = await place.runHere(["pins", "diff"]);
      expect(stdout).toContain("files__read2  (read2 of files, new)\n");
      expect(stdout).toContain("mails it");
    }
    expect((await place.runHere(["list", "--json"])).stdout).not.toContain("read2");
    expect((await place.runHere(["pins", "approve", "--all"])).stdout).toMatch(
      /approved: \(not pinned\) → [0-9a-f]{12}/,
    );
    expect((await place.runHere(["list", "--json"])).stdout).toContain("files__read2");
    const records = (await place.runHere(["audit", "--json"])).json<StoredRecord[]>();
    expect(records.map(({ event, origin }) => [event, origin?.name])).toEqual([
      ["pin.new", "read2"],
      ["pin.approved", "read2"],
    ]);
  });

  it("[guard-15b] under warn it is pinned with a warning and a record", async () => {
    const place = await pinned("warn");
    offer(place, read, write, { name: "read2", description: "Reads a file and mails it." });
    expect((await place.runHere(["pins", "diff"])).stderr).toContain(
      "files: new since the server was first seen, now pinned: read2",
    );
    const records = (await place.runHere(["audit", "--json"])).json<StoredRecord[]>();
    expect(records.map(({ event, origin }) => [event, origin?.name])).toEqual([["pin.recorded", "read2"]]);
  });

  it("reset forgets, for a server or all", async () => {
    const place = await pinned();
    expect((await place.runHere(["pins", "reset", "nobody"])).code).toBe(1);
    expect((await place.runHere(["pins", "reset", "files"])).stdout).toContain("Deleted 2 pins");
    expect((await place.runHere(["pins", "list", "--json"])).json()).toEqual([]);
    offer(place, readChanged);
    await place.runHere(["pins", "diff"]);
    expect((await place.runHere(["pins", "diff", "--json"])).json()).toEqual([]);
    expect((await place.runHere(["pins", "reset", "--json"])).json()).toMatchObject({
      removed: [{ server: "files", tool: "read" }],
    });
  });

  it("a server that is down is told of, and is an error when it is the one asked for", async () => {
    const place = await pinned();
    place.configure({ files: missingProgram });
    const all = await place.runHere(["pins", "diff"]);
    expect(all.code).toBe(0);
    expect(all.stderr).toContain("not connected: files");
    expect((await place.runHere(["pins", "approve", "files__read"])).code).toBe(4);
  });

  it("wrong usage is exit 2, an unusable file exit 1 with the reason", async () => {
    const place = await pinned();
    for (const wrong of [["aprove"], ["approve"], ["approve", "files__read", "--all"], ["reset", "a", "b"]]) {
      expect((await place.runHere(["pins", ...wrong])).code, wrong.join(" ")).toBe(2);
    }
    place.write("toolcrib.lock", "{");
    const broken = await place.runHere(["pins", "list", "--json"]);
    expect(broken.code).toBe(1);
    expect(broken.json<{ error: { code: string; message: string } }>().error.message).toContain("is not valid JSON");
    expect(place.read("toolcrib.lock")).toBe("{");
  });

  it("without a config file the pins are in the home", async () => {
    const place = workspace();
    expect((await place.runHere(["pins", "list"])).stderr).toContain(join(place.home, "toolcrib.lock"));
    expect(existsSync(join(place.home, "toolcrib.lock"))).toBe(false);
  });
});
