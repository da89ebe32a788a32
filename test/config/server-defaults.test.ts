import { describe, expect, it } from "vitest";
import { withServerDefaults } from "../../src/config/server-defaults.ts";
import { toServerEntry } from "../../src/config/server-entry.ts";
import { ConfigSchema } from "../../src/model/config.ts";
import {
  idleMsOf,
  isLazy,
  sandboxImageOf,
  sandboxKindOf,
  ServerEntrySchema,
  type ServerSpec,
} from "../../src/model/server-spec.ts";
import { codes, Workplace } from "./support.ts";

function skillServer(entry: object = {}): ServerSpec {
  const origin = { file: "/skills/x/SKILL.md", dialect: "skill" };
  return { ...ServerEntrySchema.parse({ command: "x", ...entry }), id: "s", origin, baseDir: "/skills/x" };
}

describe("the cage that a server is in", () => {
  it("[cage-01a] is its own, else the hub's; a remote server has none", async () => {
    const place = new Workplace();
    place.write("sub/more.json", { mcpServers: { far: { command: "x" } } });
    const file = place.write("toolcrib.json", {
      sandbox: { read: ["docs", "~/notes", "/srv"], memory: "512m" },
      import: ["sub/more.json"],
      mcpServers: {
        own: { command: "x", sandbox: "container" },
        free: { command: "x", sandbox: "none" },
        plain: { command: "x" },
        remote: { url: "https://h.test/mcp" },
      },
      roles: { reviewer: { mcpServers: { extra: { command: "x" } } } },
    });
    const { servers, config } = await place.load({ file });
    const hub = { read: [`${place.dir}/docs`, "~/notes", "/srv"], memory: "512m", network: "none" };
    expect(Object.fromEntries(servers.map(({ id, sandbox }) => [id, sandbox]))).toEqual({
      own: "container",
      free: "none",
      plain: hub,
      remote: undefined,
      "extra@reviewer": hub,
      far: hub,
    });
    expect(
      servers.flatMap(({ id, sandboxFrom }) => (sandboxFrom === undefined ? [] : [`${id} ${sandboxFrom}`])),
    ).toEqual(["plain hub", "extra@reviewer hub", "far hub"]);
    // What the user wrote stays what the user wrote.
    expect(config.mcpServers["plain"]?.sandbox).toBeUndefined();
    expect(servers.map((spec) => toServerEntry(spec)["sandbox"])).toEqual([
      "container",
      "none",
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("[cage-01a] of a server that a skill brings is skills.sandbox, else the hub's", () => {
    const defaults = (config: object): Parameters<typeof withServerDefaults>[1] => ({
      config: ConfigSchema.parse(config),
      baseDir: "/config",
    });
    const both = defaults({ sandbox: "none", skills: { sandbox: { write: ["out"] } } });
    expect(withServerDefaults(skillServer(), both)).toMatchObject({
      sandbox: { write: ["/config/out"] },
      sandboxFrom: "skills",
    });
    expect(withServerDefaults(skillServer(), defaults({ sandbox: "bubblewrap" }))).toMatchObject({
      sandbox: "bubblewrap",
      sandboxFrom: "hub",
    });
    expect(withServerDefaults(skillServer({ sandbox: "container" }), both)).toEqual(
      skillServer({ sandbox: "container" }),
    );
    expect(withServerDefaults(skillServer(), defaults({}))).toEqual(skillServer());
  });

  it("[cage-01a] of a server that a skill brought into the config is skills.sandbox too, whatever it is by then", async () => {
    const place = new Workplace();
    const mcpServers = { notes: { command: "x", skill: "skill-notes" }, plain: { command: "x" } };
    const config = { mcpServers, sandbox: "none", skills: { sandbox: { pids: 20 } } };
    const { servers } = await place.load({ file: place.write("toolcrib.json", config) });
    expect(servers.map(({ sandbox, sandboxFrom }) => [sandbox, sandboxFrom])).toEqual([
      [{ pids: 20, network: "none" }, "skills"],
      ["none", "hub"],
    ]);
    expect(servers[0]?.ownFolder).toBe(`${place.home}/skills/homes/skill-notes`);
    expect(toServerEntry(servers[0] ?? skillServer())).toEqual(mcpServers.notes);
  });

  it("[cage-01a] is not for an imported file to choose, where the config has one for all", async () => {
    const place = new Workplace();
    const mcpServers = {
      weaker: { command: "x", sandbox: "none", skill: "skill-x" },
      image: { sandbox: { image: "i" } },
    };
    place.write(".cursor/mcp.json", { mcpServers });
    const config = { import: [".cursor/mcp.json"], skills: { sandbox: "none" } };
    const load = (more: object): ReturnType<Workplace["load"]> =>
      place.load({ file: place.write("toolcrib.json", { ...config, ...more }) });
    const { servers, warnings } = await load({ sandbox: "bubblewrap" });
    expect(servers).toMatchObject([{ id: "weaker", sandbox: "bubblewrap", sandboxFrom: "hub", ownFolder: place.dir }]);
    expect(codes(warnings)).toEqual(["not_read weaker.sandbox", "not_read image.sandbox"]);
    expect((await load({})).servers.map(({ sandbox }) => sandbox)).toEqual(["none", { image: "i", network: "none" }]);
  });

  it("[cage-01a] may be a word or an object, whose kind follows from an image", () => {
    expect(sandboxKindOf("none")).toBe("none");
    const of = (sandbox: object): ReturnType<typeof sandboxKindOf> =>
      sandboxKindOf(ServerEntrySchema.parse({ command: "x", sandbox }).sandbox ?? "none");
    expect([of({}), of({ image: "i" }), of({ kind: "container" })]).toEqual(["bubblewrap", "container", "container"]);
    expect(sandboxImageOf("container")).toBeUndefined();
    expect(sandboxImageOf({ image: "i", network: "none" })).toBe("i");
  });
});

describe("cages that cannot be", () => {
  it("[cage-01a] are refused where they stand", async () => {
    const place = new Workplace();
    const mcpServers = {
      remote: { url: "https://h.test/mcp", sandbox: "bubblewrap" },
      image: { command: "x", sandbox: { kind: "bubblewrap", image: "i" } },
      port: { command: "x", sandbox: { port: 80 } },
      path: { command: "x", sandbox: { kind: "container", path: "/mcp" } },
      many: { command: "x", replicas: 2, isolation: "session" },
      none: {},
    };
    const config = {
      mcpServers,
      sandbox: { kind: "container", port: 80 },
      skills: { sandbox: { image: "i", kind: "none" } },
    };
    const problems = await place.problems({ file: place.write("toolcrib.json", config) });
    expect(codes(problems).toSorted()).toEqual(
      [
        "wrong_sandbox mcpServers.remote.sandbox",
        "wrong_sandbox mcpServers.image.sandbox.image",
        "wrong_sandbox mcpServers.port.sandbox.port",
        "wrong_sandbox mcpServers.path.sandbox.path",
        "wrong_server mcpServers.many.replicas",
        "wrong_server mcpServers.none",
        "wrong_sandbox sandbox.port",
        "wrong_sandbox skills.sandbox.image",
      ].toSorted(),
    );
    expect(problems.find(({ path }) => path === "mcpServers.remote.sandbox")?.message).toContain(
      "cannot be put into a sandbox",
    );
  });

  it("[cage-02a] a text with a NUL is refused and not shown", async () => {
    const place = new Workplace();
    const bad = "hunter22\0--bind";
    const mcpServers = {
      a: { command: bad },
      b: { command: "x", args: [bad] },
      c: { command: "x", env: { TOKEN: bad } },
      d: { command: "x", cwd: bad },
      e: { command: "x", sandbox: { read: [bad] } },
    };
    const problems = await place.entryProblems({ file: place.write("toolcrib.json", { mcpServers }) });
    expect(codes(problems)).toEqual(
      ["a.command", "b.args[0]", "c.env.TOKEN", "d.cwd", "e.sandbox.read[0]"].map(
        (path) => `wrong_value mcpServers.${path}`,
      ),
    );
    const secret = problems.filter(({ path }) => /command|args|env/.test(path));
    expect(JSON.stringify(secret)).not.toContain("hunter22");
  });

  it("[cage-01a] an image may know by itself what to run, and may serve HTTP", async () => {
    const place = new Workplace();
    const mcpServers = {
      image: { sandbox: { image: "i" }, env: { LEVEL: "1" } },
      http: { sandbox: { image: "i", port: 8080, path: "/x" } },
      command: { command: "serve", transport: "http", sandbox: { image: "i", port: 8080 } },
      remote: { url: "https://h.test/mcp", sandbox: "none" },
    };
    const { servers, warnings } = await place.load({ file: place.write("toolcrib.json", { mcpServers }) });
    expect(servers.map(({ id }) => id)).toEqual(Object.keys(mcpServers));
    expect(warnings).toEqual([]);
  });

  it("[cage-01a] keys without effect are told of", async () => {
    const place = new Workplace();
    const mcpServers = {
      a: { command: "x", sandbox: { kind: "none", memory: "1g" }, replicas: 2 },
      b: { url: "https://h.test/mcp", replicas: 2 },
    };
    const { warnings } = await place.load({ file: place.write("toolcrib.json", { mcpServers }) });
    expect(codes(warnings).toSorted()).toEqual(
      [
        "unused_key mcpServers.a.sandbox.memory",
        "unused_key mcpServers.b.replicas",
        "unused_key mcpServers.a.replicas",
      ].toSorted(),
    );
  });
});

describe("when a server starts and stops", () => {
  it("[counter-06d] is its own `start`, else the config's, for remote servers too", async () => {
    const place = new Workplace();
    const mcpServers = { a: { command: "x" }, b: { command: "x", start: "eager" }, c: { url: "https://h/mcp" } };
    const { servers } = await place.load({ file: place.write("toolcrib.json", { start: "lazy", mcpServers }) });
    expect(servers.map(isLazy)).toEqual([true, false, true]);
    expect(servers.map(toServerEntry)[0]).toEqual({ command: "x" });
    const plain = await place.load({ file: place.write("toolcrib.json", { mcpServers }) });
    expect(plain.servers.map(isLazy)).toEqual([false, false, false]);
  });

  it("[counter-06e] is a text with a unit", async () => {
    const place = new Workplace();
    for (const idle of ["15", "0m", "-1s", "1d", "soon", "15 m", 900_000]) {
      const mcpServers = { a: { command: "x", idle } };
      const [problem] = await place.entryProblems({ file: place.write("toolcrib.json", { mcpServers }) });
      expect(problem).toMatchObject({ path: "mcpServers.a.idle" });
    }
    const times = { "1s": 1000, "15m": 900_000, "2h": 7_200_000, "9999h": 2 ** 31 - 1 };
    for (const [idle, ms] of Object.entries(times)) expect(idleMsOf({ idle })).toBe(ms);
    expect(idleMsOf({})).toBeUndefined();
  });
});

describe("a cluster", () => {
  const url = "nats://127.0.0.1:4222";

  it("[scale-05b] needs a store that all nodes share", async () => {
    const place = new Workplace();
    for (const store of [undefined, "sqlite"]) {
      const file = place.write("toolcrib.json", { cluster: url, store });
      const [problem] = await place.problems({ file });
      expect(problem).toMatchObject({ code: "wrong_cluster", path: "cluster", line: 2 });
      expect(problem?.message).toContain("PostgreSQL");
      expect(problem?.hint).toContain("store");
    }
    for (const store of ["postgres://h/db", "postgresql://h/db", "${DATABASE_URL}", "secret://env/DB"]) {
      for (const cluster of [url, { url: [url, "tls://h:4222"], node: "a" }]) {
        const { warnings } = await place.load({ file: place.write("toolcrib.json", { cluster, store }) });
        expect(warnings).toEqual([]);
      }
    }
    // Who makes the hub in code may hand it the store besides.
    await place.load({ config: { cluster: url } });
    expect(codes(await place.problems({ config: { cluster: url, store: "sqlite" } }))).toEqual([
      "wrong_cluster cluster",
    ]);
  });

  it("[counter-06h] does not start its programs on demand", async () => {
    const place = new Workplace();
    const shared = { cluster: url, store: "postgres://h/db" };
    const remote = { url: "https://h/mcp", start: "lazy", idle: "5m" };
    const mcpServers = { a: { command: "x", start: "lazy" }, b: { command: "x", idle: "5m" }, c: remote };
    const found = await place.problems({
      file: place.write("toolcrib.json", { ...shared, start: "lazy", mcpServers }),
    });
    expect(codes(found)).toEqual([
      "wrong_cluster start",
      "wrong_cluster mcpServers.a.start",
      "wrong_cluster mcpServers.b.idle",
    ]);
    expect(found[0]?.hint).toContain("url");
    const { servers } = await place.load({
      file: place.write("toolcrib.json", { ...shared, mcpServers: { c: remote } }),
    });
    expect(servers[0]).toMatchObject({ start: "lazy", idle: "5m" });
  });

  it("[scale-05b] credentials in its address are told of and not shown", async () => {
    const place = new Workplace();
    const store = "postgres://h/db";
    const plain = [
      "nats://me:hunter22@h:4222",
      { url: ["nats://h", "nats://tokentoken@h"], credentials: "-----BEGIN NATS" },
    ];
    const found: string[] = [];
    for (const cluster of plain) {
      const { warnings } = await place.load({ file: place.write("toolcrib.json", { cluster, store }) });
      expect(JSON.stringify(warnings)).not.toMatch(/hunter22|tokentoken|BEGIN/);
      found.push(...codes(warnings));
    }
    expect(found).toEqual([
      "plain_credential cluster",
      "plain_credential cluster.url[1]",
      "plain_credential cluster.credentials",
    ]);
    const good = { url: "nats://me:${PW}@h", credentials: "/etc/nats.creds" };
    expect((await place.load({ file: place.write("toolcrib.json", { cluster: good, store }) })).warnings).toEqual([]);
  });
});
