/** Agent clients of the hub's machine, connected by the operator's API. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import type { ChangedClient, ClientSnippet } from "../../../../src/contract/settings-schemas.ts";
import { runProgram } from "../../../support/run-program.ts";
import { type ApiScene, apiScene } from "./api-setup.ts";

describe("clients on the hub's machine", () => {
  let scene: ApiScene;
  let person: string;
  beforeAll(async () => {
    scene = await apiScene((dir) => {
      person = join(dir, "person");
      mkdirSync(join(person, ".cursor"), { recursive: true });
      writeFileSync(
        join(person, ".cursor/mcp.json"),
        '{\n  // mine\n  "mcpServers": { "other": { "command": "x" } }\n}\n',
      );
      return { servers: {}, env: { HOME: person, USERPROFILE: person, XDG_CONFIG_HOME: join(person, ".config") } };
    });
  });
  afterAll(() => scene.close());

  const known = async (id: string): Promise<ClientSnippet> => {
    const { clients } = (await scene.request("admin", "GET", "/clients")).json<{ clients: ClientSnippet[] }>();
    const found = clients.find((client) => client.id === id);
    if (found === undefined) throw new Error(`${id} is not listed.`);
    return found;
  };

  it("[joy-11b] are connected and disconnected again, with everything else left as it was", async () => {
    const file = join(person, ".cursor/mcp.json");
    const before = readFileSync(file, "utf8");
    expect(await known("cursor")).toMatchObject({ installed: true, connected: false, file });
    expect(await known("windsurf")).toMatchObject({ installed: false, connected: false });
    const change = (await scene.request("admin", "POST", "/clients/cursor/connect")).json<ChangedClient>();
    expect(change).toMatchObject({ id: "cursor", file, changed: true, next: expect.stringContaining("Cursor") });
    const text = readFileSync(file, "utf8");
    expect(text).toContain("// mine");
    const { command, args, env } = (
      JSON.parse(text.replace("// mine", "")) as {
        mcpServers: { toolcrib: { command: string; args: string[]; env: Record<string, string> } };
      }
    ).mcpServers.toolcrib;
    // Of this very checkout, and of this hub.
    expect(existsSync(command)).toBe(true);
    expect(args).toEqual([expect.stringMatching(/bin[\\/]toolcrib\.js$/), "mcp", "--config", scene.file]);
    expect(env["TOOLCRIB_HOME"]).toBe(scene.home);
    expect(await known("cursor")).toMatchObject({ installed: true, connected: true });
    expect((await scene.request("admin", "POST", "/clients/cursor/connect")).json()).toMatchObject({ changed: false });
    expect((await scene.request("admin", "POST", "/clients/cursor/disconnect")).json()).toMatchObject({
      changed: true,
    });
    expect(readFileSync(file, "utf8")).toBe(before);
    await scene.hub.audit.flush();
    const { entries } = (await scene.request("admin", "GET", "/audit?type=event&q=client.")).json<{
      entries: AuditEntry[];
    }>();
    expect(entries.map(({ event, name }) => [event, name])).toEqual([
      ["client.disconnected", "cursor"],
      ["client.connected", "cursor"],
    ]);
  });

  it("[joy-11b] keeps an entry that someone else wrote", async () => {
    const file = join(person, ".cursor/mcp.json");
    const foreign = '{ "mcpServers": { "toolcrib": { "command": "something-else" } } }';
    const before = readFileSync(file, "utf8");
    writeFileSync(file, foreign);
    expect((await scene.request("admin", "POST", "/clients/cursor/connect")).json()).toMatchObject({
      error: { code: "conflict" },
    });
    expect(readFileSync(file, "utf8")).toBe(foreign);
    writeFileSync(file, before);
    expect((await scene.request("admin", "POST", "/clients/nothing/connect")).json()).toMatchObject({
      error: { code: "not_found" },
    });
  });
});

it("[joy-11b] the command for the terminal works from any folder, in a clone too", async () => {
  let person = "";
  const scene = await apiScene((dir) => {
    person = join(dir, "person");
    mkdirSync(person);
    return { servers: {}, env: { HOME: person }, open: true };
  });
  try {
    const { clients } = (await scene.request(null, "GET", "/clients")).json<{ clients: ClientSnippet[] }>();
    const { command = "" } = clients.find(({ id }) => id === "cursor") ?? {};
    expect(command).toMatch(/connect cursor --url http/);
    const ran = await runProgram("sh", ["-c", `${command} --dry-run --json`], { cwd: person, env: { HOME: person } });
    expect(JSON.parse(ran.stdout)).toMatchObject({ client: "cursor", by: "url", written: ["toolcrib"] });
  } finally {
    await scene.close();
  }
});

it("[joy-11b] callers who do not run the hub cannot change the clients of its machine", async () => {
  const scene = await apiScene({ servers: {} });
  try {
    const { clients } = (await scene.request("read", "GET", "/clients")).json<{ clients: ClientSnippet[] }>();
    expect(clients.some(({ installed, connected, file }) => installed || connected || file !== null)).toBe(false);
    expect((await scene.request("call", "POST", "/clients/cursor/connect")).status).toBe(403);
  } finally {
    await scene.close();
  }
});
