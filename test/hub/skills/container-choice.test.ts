import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ChosenServer, chooseContainers } from "../../../src/hub/skills/auto-start.ts";
import { type ConfigInput, ConfigSchema } from "../../../src/model/config.ts";
import type { RequiredServer } from "../../../src/model/skill.ts";
import { findMatchingServer, isSameServer } from "../../../src/skills/servers/match-servers.ts";
import { resolveServerEntry } from "../../../src/skills/servers/server-entry.ts";
import { specOf } from "../../support/connection-bench.ts";
import { fakeEngine } from "../../support/fake-engine.ts";

const variables = { CWD: "/w", WORKSPACE: "/w", HOME: "/h", SKILL_DIR: "/s" };
const tickets: RequiredServer = {
  name: "tickets",
  template: { command: "npx", args: ["-y", "@acme/tickets", "--team", "${TEAM}"], env: { TOKEN: "${TOKEN}" } },
  parameters: [
    { name: "TEAM", required: true, sensitive: false },
    { name: "TOKEN", required: true, sensitive: true },
  ],
  docker: { image: "acme/tickets:2" },
};
const imageOnly: RequiredServer = {
  name: "reports",
  parameters: [{ name: "REPORT_KEY", required: true, sensitive: false }],
  docker: { image: "acme/reports", port: 8080 },
};
const overStdio = {
  command: "npx",
  args: ["-y", "@acme/tickets", "--team", "blue"],
  env: { TOKEN: "secret://env/TOKEN" },
};

describe("[cage-03e] a skill's server that comes as an image", () => {
  let dir: string;
  let engine: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "toolcrib-choice-"));
    engine = fakeEngine(dir);
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  async function chosen(server: RequiredServer, program: string, config: ConfigInput = {}): Promise<ChosenServer> {
    const parsed = ConfigSchema.parse({ containers: { program }, ...config });
    const choose = await chooseContainers([server], { config: parsed }, process.env);
    return choose(server);
  }

  const entry = (server: RequiredServer): ReturnType<typeof resolveServerEntry> =>
    resolveServerEntry(server, { TEAM: "blue", TOKEN: "secret://env/TOKEN", REPORT_KEY: "k" }, variables);

  it("runs in a container where one can be run, with its own arguments and variables", async () => {
    const { server, notice } = await chosen(tickets, engine);
    expect(entry(server)).toEqual({
      args: ["--team", "blue"],
      env: { TOKEN: "secret://env/TOKEN" },
      sandbox: { kind: "container", image: "acme/tickets:2", network: "none" },
    });
    expect(notice).toMatch(/runs in a container of the image acme\/tickets:2\. It has no network/);

    const alone = await chosen(imageOnly, engine);
    expect(entry(alone.server)).toEqual({
      env: { REPORT_KEY: "k" },
      sandbox: { kind: "container", image: "acme/reports", port: 8080, network: "host" },
    });
    expect(alone.notice).toContain("its port is published");
  });

  it("runs over stdio as the skill says where none can be run, with a notice", async () => {
    const { server, notice } = await chosen(tickets, "/nowhere/podman");
    expect(entry(server)).toEqual(overStdio);
    expect(notice).toMatch(/not run in a container of the image acme\/tickets:2.*command not found/);
    const alone = await chosen(imageOnly, "/nowhere/podman");
    expect(() => entry(alone.server)).toThrow("does not say how");
    expect(alone.notice).toContain("is available only as the image acme/reports");
  });

  it("runs in the cage that was chosen for skills, if it can", async () => {
    const config: ConfigInput = { skills: { sandbox: "bubblewrap" } };
    expect(entry((await chosen(tickets, engine, config)).server)).toEqual(overStdio);
    for (const sandbox of [{ memory: "100m" }, { kind: "bubblewrap" }] as const) {
      expect(entry((await chosen(tickets, engine, { skills: { sandbox } })).server)).toEqual(overStdio);
    }
  });

  it("has what the operator gives the servers of skills, and no more", async () => {
    const cage = { memory: "100m", cpus: 1, pids: 50, timeout: 60_000, network: "host" } as const;
    const { server } = await chosen(imageOnly, engine, { skills: { sandbox: { kind: "bubblewrap", ...cage } } });
    expect(entry(server).sandbox).toEqual({ kind: "container", image: "acme/reports", port: 8080, ...cage });
    for (const config of [{ skills: { sandbox: { pids: 9 } } }, { sandbox: "container" }] as ConfigInput[]) {
      // No network, so no port.
      const alone = await chosen(imageOnly, engine, config);
      expect(() => entry(alone.server)).toThrow("does not say how");
      expect(alone.notice).toContain("no network");
    }
    const withPort = { ...tickets, docker: { image: "acme/tickets:2", port: 80 } };
    const other = await chosen(withPort, engine, { skills: { sandbox: "container" } });
    expect(entry(other.server)).toEqual(overStdio);
    expect(other.notice).toContain("no network");
  });

  it("asks no engine where no server needs one", async () => {
    const { docker: _docker, ...plain } = tickets;
    expect(await chosen(plain, "/nowhere/podman")).toEqual({ server: plain });
  });

  it("is known again by its image", async () => {
    const { server } = await chosen(tickets, engine);
    const spec = specOf(entry(server), "other name");
    expect(findMatchingServer(tickets, [spec])).toBe(spec);
    expect(isSameServer(spec, entry(server))).toBe(true);
    const another = { ...spec, sandbox: { kind: "container", image: "acme/other", network: "none" } } as const;
    expect(isSameServer(another, entry(server))).toBe(false);
    expect(findMatchingServer(tickets, [another])).toBeUndefined();
  });
});
