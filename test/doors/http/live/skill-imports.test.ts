/** Imports of skills over REST and the WebSocket, as a program that manages skills sees them. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LiveConnection, ToolcribClient } from "../../../../src/api-client/index.ts";
import type { HubEvent } from "../../../../src/contract/websocket.ts";
import { ServedHub } from "../../../load/served-hub.ts";
import { writeSkill } from "../../../support/skill-folder.ts";

let hub: ServedHub;
let live: LiveConnection;
const heard: HubEvent[] = [];

beforeAll(async () => {
  hub = await ServedHub.start({});
  live = new ToolcribClient(hub).live({ onEvent: (event) => heard.push(event) });
  await live.command("me", {});
});

afterAll(async () => {
  live.close();
  await hub.remove();
});

const events = <Type extends HubEvent["type"]>(type: Type): HubEvent<Type>[] =>
  // What has this type has the fields of this type.
  heard.filter((event) => event.type === type) as HubEvent<Type>[];

async function rest<T>(path: string, body?: object): Promise<T> {
  const response = await fetch(`${hub.url}/api/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${hub.token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(response.ok).toBe(true);
  return (await response.json()) as T;
}

interface Report {
  readonly imported: readonly { skillId: string; path: string; instructions?: string; warnings: readonly unknown[] }[];
}

const NEEDY = [
  'metadata: {"openclaw": {"requires": {"bins": ["toolcrib-none"], "env": ["TOOLCRIB_NONE"], "config": ["a.b"]}, "os": ["win32"]}}',
  "requires-mcp-servers: [filesystem]",
];
const CODES = ["MISSING_BIN", "MISSING_ENV", "MISSING_CONFIG", "MISSING_OS", "MISSING_SERVER"];

describe("[whole-15a] an import says what is missing", () => {
  it("in the reply, also of a dry run, and in the event", async () => {
    const path = writeSkill(join(hub.dir, "needy"), "needy", { more: NEEDY, body: "Do it." });
    for (const dryRun of [true, false]) {
      const { imported } = await rest<Report>("/skills/import", { path, dryRun });
      expect(imported).toMatchObject([{ path, instructions: "Do it." }]);
      const warnings = imported[0]?.warnings as { code: string; message: string }[];
      expect(warnings.map(({ code }) => code)).toEqual(CODES);
      expect(warnings.at(-1)?.message).toBe("The MCP server filesystem is not set up.");
    }
    await expect.poll(() => events("openclaw.skill.imported")).toHaveLength(1);
    expect(events("openclaw.skill.imported")[0]?.warnings.map(({ code }) => code)).toEqual(CODES);
  });
});

describe("[whole-15b] an import of a folder", () => {
  it("sends an event for each skill, and one with numbers", async () => {
    const dirPath = join(hub.dir, "many");
    for (const name of ["one", "two"]) writeSkill(dirPath, name);
    writeSkill(dirPath, "bad", { description: '""', body: " " });
    await live.command("openclaw.importDirectory", { dirPath });
    await expect.poll(() => events("openclaw.batch.imported")).toHaveLength(1);
    expect(events("openclaw.batch.imported")).toMatchObject([
      {
        imported: 2,
        failed: 1,
        totalScanned: 3,
        skills: [{ name: "one" }, { name: "two" }],
        failures: [{ name: "bad" }],
      },
    ]);
    const named = events("openclaw.skill.imported").map(({ name }) => name);
    expect(named.slice(-2)).toEqual(["one", "two"]);
  });
});

describe("[whole-17a] manifests", () => {
  it("have an icon, keywords, tools as objects and a source, by which skills are filtered", async () => {
    const path = writeSkill(join(hub.dir, "plain"), "plain", { body: "Plain." });
    await rest<Report>("/skills/import", { path });
    const { skills } = await rest<{ skills: { name: string }[] }>("/skills?source=agentskills");
    expect(skills.map(({ name }) => name)).toEqual(["plain"]);
    const id = "skill-plain";
    expect(await rest(`/skills/${id}/instructions`)).toMatchObject({
      path: expect.stringContaining("skill-plain"),
      instructions: expect.stringContaining("Plain."),
      manifest: {
        id,
        icon: expect.stringMatching(/./),
        keywords: ["imported", "agentskills"],
        tools: [{ name: "skill__plain", description: "Knows all about plain." }],
        source: "agentskills",
        sourcePath: path,
      },
    });
  });

  it("of all that comes through openclaw commands have ids of OpenClaw, and stay one skill", async () => {
    const path = join(hub.dir, "plain", "plain");
    const { imported } = await live.command("openclaw.importSkill", { path });
    expect(imported).toMatchObject([
      { skillId: "openclaw-skill-plain", path, instructions: "Plain.", manifest: { source: "openclaw" } },
    ]);
    const { skills } = await live.command("openclaw.listImported", {});
    expect(skills.every(({ id, source }) => id.startsWith("openclaw-skill-") && source === "openclaw")).toBe(true);
    expect(skills.map(({ name }) => name)).toContain("plain");
    const named = await live.command("skills.list", { q: "all about plain" });
    expect(named.skills.map(({ id }) => id)).toEqual(["openclaw-skill-plain"]);
    expect(events("openclaw.skill.imported").every(({ skillId }) => skillId.startsWith("openclaw-skill-"))).toBe(true);
  });
});
