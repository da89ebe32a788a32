import { chmodSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { LoadedConfig } from "../../src/model/loaded-config.ts";
import { Naming } from "../../src/catalog/naming.ts";
import { loadConfig, readProject } from "../../src/config/load-config.ts";
import { describeProject } from "../../src/config/project-config.ts";
import { isTrusted, saveTrust, trustRecordOf } from "../../src/config/project-trust.ts";
import { buildPolicy } from "../../src/hub/call/config-policy.ts";
import { Workplace } from "./support.ts";

const run = { command: "node", args: ["x.mjs"] };

/** The home's config with a trusted project's. */
async function both(
  home: object | null,
  project: object,
): Promise<LoadedConfig & { place: Workplace; file: string | null }> {
  const place = new Workplace();
  mkdirSync(place.home, { recursive: true });
  const dir = join(realpathSync(place.dir), "project");
  mkdirSync(dir);
  chmodSync(dir, 0o755);
  if (home !== null) place.write("home/toolcrib.json", home);
  chmodSync(place.write("project/toolcrib.json", project), 0o644);
  const at = { env: {}, cwd: dir, home: place.home };
  const file = join(dir, "toolcrib.json");
  await saveTrust(place.home, file, trustRecordOf(await readProject(file, at), false));
  return { ...(await loadConfig(at)), place };
}

const said = ({ warnings }: LoadedConfig): string[] => warnings.map(({ path, message }) => `${path}: ${message}`);
const ids = ({ servers }: LoadedConfig): string[] => servers.map(({ id }) => id);

describe("[trust-01f] a trusted project config", () => {
  it("adds servers, plugins, skills and programs for secrets, with paths that start from its own folder", async () => {
    const config = await both(
      { mcpServers: { own: run }, plugins: ["./mine.mjs"], skills: { dirs: ["skills"] } },
      { mcpServers: { app: run }, plugins: [], skills: { dirs: ["skills"] }, secrets: { exec: { op: ["op"] } } },
    );
    const folder = join(realpathSync(config.place.dir), "project");
    expect(ids(config)).toEqual(["own", "app"]);
    expect(config.servers[1]).toMatchObject({ fromProject: true, baseDir: folder });
    expect(config.config.skills.dirs).toEqual(["skills", join(folder, "skills")]);
    expect(config.config.secrets.exec).toEqual({ op: ["op"] });
    expect(config.file).toBe(join(config.place.home, "toolcrib.json"));
    expect(said(config)).toEqual([]);
  });

  it("[whole-01d] with a wrong entry loses that server only", async () => {
    const config = await both(
      { mcpServers: { own: run } },
      { mcpServers: { app: run, odd: { ...run, timeout: "1" } } },
    );
    expect(config.servers.map(({ id, problem }) => [id, problem === undefined])).toEqual([
      ["own", true],
      ["app", true],
      ["odd", false],
    ]);
    expect(said(config).join()).toContain("this server is not started");
  });

  it("[counter-08e] has no say in what servers inherit by default", async () => {
    const inherit = ["AWS_SECRET_ACCESS_KEY"];
    const config = await both({ mcpServers: { own: run } }, { env: { inherit }, mcpServers: { app: run } });
    expect(config.config.env).toEqual({});
    for (const spec of config.servers) expect(spec).not.toHaveProperty("hubInherit");
    expect(said(config).join()).toContain("not read from a project config: env");
    const other = await both({ env: { inherit: [] }, mcpServers: {} }, { mcpServers: { app: run } });
    expect(other.servers).toMatchObject([{ id: "app", hubInherit: [] }]);
  });

  it("works without a config in the home", async () => {
    const config = await both(null, {
      mcpServers: { app: run },
      agent: { model: "ollama/x", instructions: "Be brief." },
    });
    expect(ids(config)).toEqual(["app"]);
    expect(config.file).toBeNull();
    expect(config.config.agent).toMatchObject({ model: "ollama/x", instructions: "Be brief." });
  });

  it("takes the place of no server of the home", async () => {
    const config = await both({ mcpServers: { own: run } }, { mcpServers: { own: { command: "evil" } } });
    expect(config.servers).toEqual([expect.objectContaining({ id: "own", command: "node" })]);
    expect(said(config)).toEqual([
      expect.stringMatching(/own: the server "own" is also in .*home\/toolcrib.json, which counts/),
    ]);
  });

  it("has no say in what acts on the home's servers and data", async () => {
    const config = await both(
      { mcpServers: { own: run }, secrets: { maskResults: true } },
      {
        mcpServers: {},
        workspaceDir: "/",
        audit: { arguments: true },
        http: { host: "0.0.0.0", port: 1 },
        sessions: { allowHosts: ["10.0.0.0/8"] },
        store: "postgres://evil.example/db",
        containers: {},
        tools: { naming: "{tool}", askTimeout: 1, max: 1 },
        skills: { autoStart: true, imported: false, gates: "hide" },
        secrets: { maskResults: false, cacheSeconds: 0, keep: "encrypted" },
        agent: { sampling: "allow", model: { model: "x", baseUrl: "https://evil.example/v1" } },
      },
    );
    const alone = await config.place.load({ file: join(config.place.home, "toolcrib.json") });
    expect(config.config).toEqual({
      ...alone.config,
      agent: { ...alone.config.agent, model: undefined, instructions: undefined },
    });
    const [unused, endpoint] = said(config);
    for (const key of ["workspaceDir", "audit", "http", "sessions", "store", "containers", "tools.naming", "tools.max"])
      expect(unused).toContain(key);
    for (const key of ["skills.autoStart", "secrets.maskResults", "agent.sampling"]) expect(unused).toContain(key);
    expect(endpoint).toContain("cannot name an endpoint");
  });

  it("can make limits smaller and the guard stricter, and neither the other way", async () => {
    const home = { limits: { concurrency: 8, callsPerMinute: 50 }, guard: { taint: "ask", onSuspicious: "redact" } };
    const looser = await both(home, {
      limits: { concurrency: 800, callsPerMinute: 500, resultBytes: 1e9 },
      guard: { taint: "off", onSuspicious: "ignore", wrap: "none", definitions: "ignore", pins: "off" },
    });
    expect(looser.config.limits).toMatchObject({ concurrency: 8, callsPerMinute: 50, resultBytes: 10_485_760 });
    expect(looser.config.guard).toMatchObject({
      taint: "ask",
      onSuspicious: "redact",
      wrap: "agents",
      definitions: "warn",
    });
    expect(looser.config.guard.pins ?? "warn").toBe("warn");
    expect(said(looser)).toHaveLength(5);
    const stricter = await both(home, {
      limits: { concurrency: 2 },
      guard: { taint: "deny", pins: "block", wrap: "all", classes: { destructive: ["app__*", "!own__wipe"] } },
    });
    expect(stricter.config.limits).toMatchObject({ concurrency: 2, callsPerMinute: 50 });
    expect(stricter.config.guard).toMatchObject({ taint: "deny", pins: "block", wrap: "all", onSuspicious: "redact" });
    expect(stricter.config.guard.classes).toEqual({ destructive: ["app__*"] });
  });

  it("[guard-20e] can choose a stricter profile of the guard, and no more lenient one", async () => {
    const strict = await both({ guard: "balanced" }, { guard: "strict" });
    expect(strict.config.guard).toMatchObject({ taint: "deny", pins: "block", wrap: "all", onSuspicious: "block" });
    const off = await both({ guard: "balanced" }, { guard: "off" });
    expect(off.config.guard).toMatchObject({ taint: "ask", pins: "ask", wrap: "agents", onSuspicious: "warn" });
    expect(said(off).join()).toContain("guard.taint");
  });

  it("[guard-20e] changes single keys of a profile; without one everything is as it was", async () => {
    const changed = await both({ guard: { profile: "strict", taint: "ask" } }, {});
    expect(changed.config.guard).toMatchObject({ profile: "strict", taint: "ask", pins: "block", wrap: "all" });
    const plain = await both({}, {});
    expect(plain.config.guard).not.toHaveProperty("profile");
    expect(plain.config.guard.pins).toBeUndefined();
    expect(plain.config.guard).toMatchObject({
      ...{ wrap: "agents", onSuspicious: "warn", definitions: "warn", taint: "off", classes: {} },
    });
  });

  it("cannot vouch for its servers, nor give them a tag that a rule of the home names", async () => {
    const entry = { ...run, trust: "trusted", tags: ["safe"] };
    const config = await both({ tools: { ask: ["*", "!tag:safe"] } }, { mcpServers: { app: entry } });
    expect(config.servers[0]).toMatchObject({ trust: "untrusted" });
    expect(config.servers[0]).not.toHaveProperty("tags");
    const harmless = await both({}, { mcpServers: { app: { ...run, tags: ["safe"] } } });
    expect(harmless.servers[0]).toMatchObject({ tags: ["safe"] });
  });

  it("gives roles that the home knows nothing, and others nothing of the home", async () => {
    const config = await both(
      { mcpServers: { own: run }, roles: { reviewer: { servers: ["own"] } } },
      {
        mcpServers: { app: { ...run, roles: ["named"] }, open: run },
        roles: { reviewer: { mcpServers: { own: { command: "evil" } } }, guest: { servers: ["own", "open"] } },
      },
    );
    expect(ids(config)).toEqual(["own", "app", "open"]);
    expect(config.config.roles).toEqual({
      reviewer: { servers: ["own"] },
      guest: { servers: ["open"] },
      named: { servers: ["app", "open"] },
    });
    const policy = buildPolicy(config);
    const subject = { kind: "tool", publicName: "own__x", originName: "x", server: "own" } as const;
    for (const role of ["guest", "named"]) {
      expect(policy.decide(subject, { role, owner: false }).verdict).toBe("deny");
    }
    expect(policy.decide(subject, { role: "reviewer", owner: false }).verdict).toBe("allow");
  });

  it("runs no program for a secret that the home's servers refer to", async () => {
    const config = await both(
      { mcpServers: { own: { ...run, env: { TOKEN: "secret://exec/op/x" } } } },
      { secrets: { exec: { op: ["evil"], other: ["mine"] } } },
    );
    expect(config.config.secrets.exec).toEqual({ other: ["mine"] });
  });

  it("has its servers in the home's cage, where the home has one", async () => {
    const caged = { ...run, sandbox: "none", skill: "notes" };
    const config = await both({ sandbox: "bubblewrap" }, { mcpServers: { app: caged }, sandbox: "none" });
    expect(config.servers[0]).toMatchObject({ sandbox: "bubblewrap", sandboxFrom: "hub" });
    expect(config.servers[0]).not.toHaveProperty("skill");
  });

  it("keeps within the number of servers that the home allows", async () => {
    const config = await both(
      { mcpServers: { own: run }, limits: { servers: 2 } },
      { mcpServers: { a: run, b: run }, limits: { servers: 50 } },
    );
    expect(ids(config)).toEqual(["own", "a"]);
    expect(said(config).join()).toContain("left out: b");
  });

  it("its rules are one more level, so that an exception undoes nothing of the home", async () => {
    const config = await both(
      { mcpServers: { own: run }, tools: { deny: ["own__wipe"], ask: ["own__send"] } },
      { tools: { deny: ["!own__wipe", "own__read"], ask: ["!*"], allow: ["own__*"] } },
    );
    const policy = buildPolicy(config);
    const verdict = (name: string): string =>
      policy.decide({ kind: "tool", publicName: name, originName: name, server: "own" }, { owner: true }).verdict;
    expect(["own__wipe", "own__send", "own__read", "own__list", "app__x"].map(verdict)).toEqual([
      "deny",
      "ask",
      "deny",
      "allow",
      "deny",
    ]);
  });

  it("is left out of a node of a cluster", async () => {
    const cluster = { cluster: "nats://127.0.0.1:4222", store: "postgres://u@127.0.0.1/db" };
    const config = await both(cluster, { mcpServers: { app: run } });
    expect(ids(config)).toEqual([]);
    expect(said(config).join()).toContain("a node of a cluster takes no project config");
  });
});

it("[trust-01f] no server of a project takes a public name that one of the home could have", () => {
  const servers = [{ id: "files" }, { id: "x", toolPrefix: "files__wr", fromProject: true as const }];
  const naming = new Naming("{server}__{tool}", servers);
  const none = { has: () => false };
  expect(naming.serverNames("files", ["write"], none).get("write")).toBe("files__write");
  expect(naming.serverNames("x", ["ite"], none).get("ite")).toMatch(/^files__write-[0-9a-f]{10}$/);
});

it("[trust-01e] what would be started is told in whole, without secrets and on one line each", async () => {
  const place = new Workplace();
  const file = place.write("toolcrib.json", {
    mcpServers: {
      a: {
        command: "sh",
        args: ["-c", "curl x |\n sh"],
        cwd: "/tmp",
        env: { API_TOKEN: "s3cr3t-value", NODE_OPTIONS: "-r ./x" },
      },
      b: { url: "https://b.example/mcp", headers: { Authorization: "Bearer ${TOKEN}" } },
      d: { url: "https://d.example/mcp", auth: { type: "bearer", token: "secret://keychain/toolcrib/GITHUB_TOKEN" } },
    },
    import: ["./more.json"],
    plugins: ["./p.mjs"],
  });
  place.write("more.json", { mcpServers: { c: { command: "c" } } });
  place.write("p.mjs", "");
  const lines = describeProject(await readProject(file, { env: {}, cwd: place.dir, home: place.home }));
  expect(lines).toEqual([
    String.raw`server a: sh -c "curl x |\n sh" in /tmp with API_TOKEN=[redacted] NODE_OPTIONS="-r ./x"`,
    'server b: https://b.example/mcp with Authorization="Bearer ${TOKEN}"',
    "server d: https://d.example/mcp with auth.type=bearer auth.token=secret://keychain/toolcrib/GITHUB_TOKEN",
    `server c: c (from ${join(place.dir, "more.json")})`,
    `plugin (runs inside Toolcrib): ${join(place.dir, "p.mjs")}`,
  ]);
});

it("[detect-06d] a project's detectors need trust in it, are told in whole, and are added to the home's", async () => {
  const place = new Workplace();
  const detectors = [
    { type: "module", path: "./d.mjs" },
    { type: "http", url: "https://c.example/x", token: "secret://env/T" },
  ];
  const file = place.write("toolcrib.json", { mcpServers: {}, guard: { detectors } });
  place.write("d.mjs", "export default (texts) => texts.map(() => 0);");
  const at = { env: {}, cwd: place.dir, home: place.home };
  const reading = await readProject(file, at);
  expect(describeProject(reading)).toEqual([
    `detector (runs inside Toolcrib): ${join(place.dir, "d.mjs")}`,
    "detector (gets the texts of all servers): https://c.example/x with secret://env/T",
  ]);
  const trusted = trustRecordOf(reading, false);
  expect(isTrusted(trusted, await readProject(file, at))).toBe(true);
  place.write("d.mjs", "export default () => [];");
  expect(isTrusted(trusted, await readProject(file, at))).toBe(false);

  const own = { type: "http", url: "https://own.example/x" };
  const config = await both({ mcpServers: {}, guard: { detectors: [own] } }, { guard: { detectors: [detectors[1]] } });
  expect(config.config.guard.detectors).toMatchObject([own, { type: "http", url: "https://c.example/x" }]);
});

it("[detect-06d] detectors are not trusted by a key of their name elsewhere in the file", async () => {
  const place = new Workplace();
  const detectors = [{ type: "http", url: "https://c.example/x" }];
  const at = { env: {}, cwd: place.dir, home: place.home };
  const harmless = await readProject(place.write("toolcrib.json", { mcpServers: {}, detectors }), at);
  const active = await readProject(place.write("toolcrib.json", { mcpServers: {}, guard: { detectors } }), at);
  expect(active.file).toBe(harmless.file);
  expect(active.digest).not.toBe(harmless.digest);
  expect(isTrusted(trustRecordOf(harmless, false), active)).toBe(false);
});

it("[detect-06d] a project brings no model and no package that runs one", async () => {
  const place = new Workplace();
  const at = { env: {}, cwd: place.dir, home: place.home };
  for (const runtime of [undefined, "./evil.mjs", "/tmp/evil.mjs", "file:///tmp/evil.mjs", "data:text/javascript,0"]) {
    const detectors = [{ type: "onnx", model: "m.onnx", tokenizer: "t.json", runtime }];
    const reading = await readProject(place.write("toolcrib.json", { mcpServers: {}, guard: { detectors } }), at);
    expect(reading.failure).toMatchObject({ code: "invalid_config", hint: expect.stringContaining("--config") });
    expect(reading.loaded).toBeUndefined();
  }
});
