import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { renderDiagnostic } from "../../src/config/config-document.ts";
import { codes, FIXTURES, Workplace } from "./support.ts";

describe("a good file", () => {
  it("[spine-04f] is read with comments, trailing commas, byte order mark and CRLF", async () => {
    const place = new Workplace();
    const text = '\uFEFF{\r\n  // one\r\n  "mcpServers": { /* two */ "a": { "command": "x", }, },\r\n}\r\n';
    const { servers, warnings, file, baseDir } = await place.load({ file: place.write("toolcrib.json", text) });
    expect(servers.map(({ id }) => id)).toEqual(["a"]);
    expect(warnings).toEqual([]);
    expect([file, baseDir]).toEqual([join(place.dir, "toolcrib.json"), place.dir]);
  });

  it("keeps every key that is built, and the defaults of those that are not when spelled out", async () => {
    const { config, servers, warnings } = await new Workplace().load({ file: join(FIXTURES, "toolcrib.json") });
    expect(warnings).toEqual([]);
    expect(servers[0]).toMatchObject({
      id: "files",
      timeout: 15000,
      restart: { max: 2, onTimeout: true },
      env: { TOKEN: "secret://env/FILES_TOKEN" },
      origin: { file: join(FIXTURES, "toolcrib.json"), dialect: "toolcrib" },
      baseDir: FIXTURES,
    });
    expect(servers[1]).toMatchObject({ id: "linear", restart: false, enabled: true, timeout: 30_000 });
    expect(servers[2]?.auth).toEqual({ type: "api-key", key: "secret://env/K", header: "X-API-Key" });
    expect(config.tools.naming).toBe("mcp__{server}__{tool}");
    expect(config.limits).toMatchObject({ callsPerMinute: 30, concurrency: 16 });
  });

  it("[spine-06a] keeps references as they are written, and asks for no variable", async () => {
    const place = new Workplace();
    const { servers } = await place.load({
      config: { mcpServers: { a: { command: "${NOT_SET}", env: { A_TOKEN: "secret://vault/x" } } } },
    });
    expect(servers[0]).toMatchObject({ command: "${NOT_SET}", env: { A_TOKEN: "secret://vault/x" } });
  });

  it("may be empty, or absent", async () => {
    const place = new Workplace();
    expect((await place.load()).file).toBeNull();
    expect((await place.load()).servers).toEqual([]);
    expect((await place.load({ file: place.write("toolcrib.json", "// nothing\n") })).servers).toEqual([]);
  });

  it("may be given in code, with undefined for absent keys", async () => {
    const place = new Workplace();
    const { servers, file, baseDir } = await place.load({
      config: { mcpServers: { a: { command: "x", cwd: undefined } } },
    });
    expect(servers[0]).toMatchObject({ id: "a", origin: { file: "library" }, baseDir: place.dir });
    expect([file, baseDir]).toEqual([null, place.dir]);
  });
});

describe("errors", () => {
  it("[spine-04b] name file, line, column, path, what was found and what is allowed", async () => {
    const place = new Workplace();
    const file = place.write(
      "toolcrib.json",
      `{
  "mcpServers": {
    "a": {
      "command": "x",
      "timeout": -5,
      "args": ["-y", [7]],
      "transport": "tcp"
    },
    "b": { "url": "https://h", "auth": { "type": "basic" }, "restart": { "max": "two" } }
  },
  "tools": { "naming": "{server}" },
  "limits": { "servers": "many" }
}
`,
    );
    const error = await place.failure({ file });
    expect(error.code).toBe("invalid_config");
    expect(error.message.split("\n")).toEqual([
      `${file}:5:18: mcpServers.a.timeout: found -5; expected a whole number above 0`,
      `${file}:6:22: mcpServers.a.args[1]: found a list; expected a string`,
      `${file}:7:20: mcpServers.a.transport: found "tcp"; expected "stdio", "http" or "sse"`,
      `${file}:9:50: mcpServers.b.auth.type: found "basic"; expected "bearer", "api-key", "oauth" or "client-credentials"`,
      `${file}:9:81: mcpServers.b.restart.max: found "two"; expected a whole number from 0`,
      `${file}:11:24: tools.naming: found "{server}"; expected a template that contains {tool}`,
      `${file}:12:26: limits.servers: found "many"; expected a whole number above 0`,
    ]);
  });

  it("say where the syntax breaks", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", '{\n  "mcpServers": {\n    "a": { "command" "x" }\n  }\n}\n');
    const [problem] = await place.problems({ file });
    expect(problem).toMatchObject({
      code: "syntax",
      line: 3,
      column: 22,
      message: 'syntax error: a colon is expected, found "\\""',
    });
    const cut = place.write("cut.json", '{ "mcpServers": {');
    expect((await place.failure({ file: cut })).message).toContain("found the end of the file");
  });

  it("never show a value that may be a secret", async () => {
    const place = new Workplace();
    const entry = {
      command: { key: "sk-live-1" },
      env: { KEY: ["123456"] },
      headers: "sk-live-2",
      args: "sk-live-3",
      auth: { type: "bearer", token: 9876 },
    };
    const { servers, warnings } = await place.load({
      file: place.write("toolcrib.json", { mcpServers: { a: entry } }),
    });
    expect(JSON.stringify([servers, warnings])).not.toMatch(/sk-live|123456|9876/);
    expect(servers[0]?.problem?.split("; ").filter((part) => part.includes("found"))).toHaveLength(5);
  });

  it.each([
    ["neither", {}, "found neither command nor url; expected exactly one of them"],
    ["both", { command: "x", url: "https://h" }, "found both command and url; expected exactly one of them"],
    [
      "stdio with a url",
      { url: "https://h", transport: "stdio" },
      'found "stdio" with a url; expected "http" or "sse"',
    ],
    ["sse with a command", { command: "x", transport: "sse" }, 'found "sse" with a command; expected "stdio"'],
    [
      "no web address",
      { url: "ftp://h" },
      "found a string that is not a web address; expected https://…, or http://… on loopback",
    ],
  ])("[whole-01b] do not start a server with %s", async (_, entry, message) => {
    const place = new Workplace();
    const problems = await place.entryProblems({ file: place.write("toolcrib.json", { mcpServers: { a: entry } }) });
    expect(problems.map((problem) => problem.message)).toEqual([message]);
  });

  it("refuse a name of a role that cannot be one, and a file that is no object", async () => {
    const place = new Workplace();
    const text = await place.problems({ file: place.write("toolcrib.json", '"text"') });
    expect(text[0]?.message).toBe('found "text"; expected an object');
  });

  it("come in full: those of the file and those of the environment together", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", { mcpServers: { a: {} }, cluster: {} });
    const problems = await place.problems({ file, env: { TOOLCRIB_LIMITS_SERVERS: "x" } });
    expect(codes(problems)).toEqual(["wrong_value cluster.url", "wrong_value TOOLCRIB_LIMITS_SERVERS"]);
  });

  it("refuse more servers than the limit", async () => {
    const place = new Workplace();
    const mcpServers = { a: { command: "x" }, b: { command: "x" } };
    const problems = await place.problems({
      file: place.write("toolcrib.json", { mcpServers, limits: { servers: 1 } }),
    });
    expect(problems.map(({ line, message }) => [line, message])).toEqual([
      [11, "found 2 servers in all; the limit is 1"],
    ]);
  });

  it("tell of a file that cannot be read", async () => {
    const place = new Workplace();
    place.write("folder/x", "");
    expect((await place.failure({ file: "folder" })).message).toContain("the file cannot be read (EISDIR)");
  });
});

describe("a template of names", () => {
  it.each(["{server}:{tool}", "{server}/{tool}", "{server}.{tool}", "{ server }__{tool}"])(
    "[whole-03b] whose separator no provider accepts is refused with the reason: %s",
    async (naming) => {
      const place = new Workplace();
      const [problem] = await place.problems({ file: place.write("toolcrib.json", { tools: { naming } }) });
      expect(problem).toMatchObject({
        path: "tools.naming",
        message: expect.stringContaining("model providers accept no other"),
      });
    },
  );

  it("[whole-03b] is refused beside the library's servers too", async () => {
    const place = new Workplace();
    const value = { servers: { a: { command: "x" } }, tools: { naming: "{server}:{tool}" } };
    const [inFile] = await place.problems({ file: place.write("servers.json", value) });
    expect(inFile).toMatchObject({ path: "tools.naming" });
    const [inCode] = await place.problems({ config: value });
    expect(inCode).toMatchObject({ path: "tools.naming" });
  });
});

describe("the library's form with servers by id", () => {
  it("[whole-03c] has rules and limits beside it, and names a key that is not known", async () => {
    const place = new Workplace();
    const servers = { a: { type: "http", url: "https://h.example/mcp", workingDir: null } };
    const own = await place.load({ file: place.write("own.json", { servers, tools: { deny: ["a__x"] } }) });
    expect(own.config.tools.deny).toEqual(["a__x"]);
    expect(own.servers[0]).toMatchObject({ id: "a", url: "https://h.example/mcp" });
    expect(own.servers[0]?.transport).toBeUndefined();
    const other = await place.load({ file: place.write("other.json", { servers, naming: "{tool}" }) });
    expect(other.warnings).toContainEqual(expect.objectContaining({ code: "unknown_key", path: "naming" }));
  });
});

describe("unknown keys", () => {
  it("[spine-04c] are warnings with the nearest known key; a server whose entry has one is not started", async () => {
    const place = new Workplace();
    const file = place.write(
      "toolcrib.json",
      '{\n  "mcpServers": {\n    "a": { "comand": "y", "command": "x", "disabled": true, "restart": { "maxx": 1 } }\n  },\n  "limts": {},\n  "tools": { "dney": [] },\n  "qqqqqqqqqq": 1\n}',
    );
    const { warnings, servers } = await place.load({ file });
    expect(warnings.map(renderDiagnostic)).toEqual([
      `${file}:3:12: mcpServers.a.comand: unknown key "comand"; this server is not started (did you mean "command"?)`,
      `${file}:3:74: mcpServers.a.restart.maxx: unknown key "maxx"; this server is not started (did you mean "max"?)`,
      `${file}:5:3: limts: unknown key "limts" is ignored (did you mean "limits"?)`,
      `${file}:6:14: tools.dney: unknown key "dney" is ignored (did you mean "deny"?)`,
      expect.stringContaining('qqqqqqqqqq: unknown key "qqqqqqqqqq" is ignored (known keys here: $schema, mcpServers'),
    ]);
    expect(servers[0]).not.toHaveProperty("comand");
    expect(servers[0]).toMatchObject({ enabled: false, problem: expect.stringContaining('unknown key "comand"') });
  });

  it("in a file of another name are told of too, but not in a client's own file", async () => {
    const place = new Workplace();
    const content = { mcpServers: {}, limts: {}, globalShortcut: "x" };
    expect(codes((await place.load({ file: place.write("my.json", content) })).warnings)).toEqual([
      "unknown_key limts",
      "unknown_key globalShortcut",
    ]);
    expect((await place.load({ file: place.write("claude_desktop_config.json", content) })).warnings).toEqual([]);
  });

  it("written twice are told of, and the last one counts", async () => {
    const place = new Workplace();
    const file = place.write(
      "toolcrib.json",
      '{"mcpServers": {"a": {"command": "x"},\n"a": {"command": "y", "timeout": 0}}}',
    );
    expect((await place.entryProblems({ file }))[0]).toMatchObject({ line: 2, path: "mcpServers.a.timeout" });
    const fixed = place.write("toolcrib.json", '{"mcpServers": {"a": {"command": "x"},\n"a": {"command": "y"}}}');
    const { servers, warnings } = await place.load({ file: fixed });
    expect(servers[0]?.command).toBe("y");
    expect(warnings).toMatchObject([{ code: "duplicate_key", line: 2, path: "mcpServers.a" }]);
  });
});

describe("settings that cannot hold", () => {
  it("[spine-04d] are refused by name, wherever they stand", async () => {
    const place = new Workplace();
    const entry = { url: "https://h", isolation: "room", sandbox: { kind: "jail" }, replicas: 0 };
    const config = { mcpServers: { a: entry }, sandbox: "docker", cluster: {} };
    const problems = await place.problems({ file: place.write("toolcrib.json", config) });
    expect(codes(problems)).toEqual([
      "wrong_value mcpServers.a.isolation",
      "wrong_value mcpServers.a.sandbox.kind",
      "wrong_value mcpServers.a.replicas",
      "wrong_value sandbox",
      "wrong_value cluster.url",
    ]);
    expect(problems[0]?.message).toBe('found "room"; expected "shared", "user" or "session"');
    expect(problems[3]?.message).toBe('found "docker"; expected "none", "bubblewrap" or "container" or an object');
  });

  it("[oper-01a] a store is sqlite, or an address, which may hold references", async () => {
    const place = new Workplace();
    for (const store of ["sqlite", "postgres://me@h/db", "secret://env/DB", "postgres://me:${PW}@h/db"]) {
      const loaded = await place.load({ file: place.write("toolcrib.json", { store }) });
      expect(loaded.config.store).toBe(store);
      expect(loaded.warnings).toEqual([]);
    }
    const plain = { store: "postgres://me:hunter22@h/db", secrets: { key: "a passphrase" } };
    const { warnings } = await place.load({ file: place.write("toolcrib.json", plain) });
    expect(codes(warnings)).toEqual(["plain_credential store", "plain_credential secrets.key"]);
    expect(JSON.stringify(warnings)).not.toMatch(/hunter22|passphrase/);
    const wrong = await place.problems({ file: place.write("toolcrib.json", { store: "mysql://h/db" }) });
    expect(codes(wrong)).toEqual(["wrong_value store"]);
  });

  it("[agent-01e] hosts of sessions are names, suffixes, addresses and networks, ports where they are needed, and nothing else", async () => {
    const place = new Workplace();
    const good = ["intranet", "a.b.test.", "*.corp.test", "10.9.0.1", "[fd12::1]", "10.1.0.0/16", "fd12::/16"];
    good.push("a.test:80", "127.0.0.1:8080", "localhost:3000", "[::1]:8080");
    const bad = [
      "http://a.test",
      "a.test:70000",
      "*.corp.test:80",
      "127.0.0.1",
      "localhost",
      "::1",
      "[::1]",
      "*",
      "a.*.test",
      "10.1.0.0/33",
      "10.1/16",
      "300.1.1.1",
      "a b",
      "/x",
    ];
    const { config } = await place.load({ config: { sessions: { allowHosts: good } } });
    expect(config.sessions.allowHosts).toEqual(good);
    const problems = await place.problems({ config: { sessions: { allowHosts: [...good, ...bad] } } });
    expect(codes(problems)).toEqual(bad.map((_, index) => `wrong_value sessions.allowHosts[${good.length + index}]`));
    expect(problems[0]?.message).toMatch(/^found "http:\/\/a\.test"; expected a name/);
  });

  it("are refused in an entry of the Claude shape as well", async () => {
    const place = new Workplace();
    const file = place.write("any.json", { mcpServers: { a: { command: "x", sandbox: "docker" } } });
    expect(codes(await place.problems({ file }))).toEqual(["wrong_value mcpServers.a.sandbox"]);
  });
});

describe("warnings about secrets", () => {
  it("[spine-06e] tell of plain-text credentials and secrets in args and urls, and never show them", async () => {
    const place = new Workplace();
    const mcpServers = {
      plain: { command: "x", env: { GITHUB_TOKEN: "ghp_SECRET1", LEVEL: "1", OK_TOKEN: "${T}", EMPTY_TOKEN: "" } },
      args: {
        command: "x",
        args: [
          "--api-key",
          "sk-SECRET2",
          "--token=SECRET3",
          "${MY_TOKEN}",
          "secret://env/A",
          "${HOME}",
          "--key-file",
          "f",
        ],
      },
      address: {
        command: "x",
        args: ["postgresql://me:SECRET9@localhost/db", "postgresql://me@localhost/db", "http://h:80/a@b"],
      },
      header: { url: "https://h", headers: { Authorization: "Bearer SECRET4", "X-Team": "a" } },
      auth: { url: "https://h", auth: { type: "bearer", token: "SECRET5" } },
      key: { url: "https://h", auth: { type: "api-key", key: "SECRET6" } },
      query: { url: "https://h/mcp?api_key=SECRET7&a=1" },
      user: { url: "https://me:SECRET8@h/mcp" },
      path: { url: "https://h/${API_TOKEN}/mcp" },
      fine: { url: "https://h/mcp?team=a", auth: { type: "bearer", token: "secret://env/T" } },
    };
    const { warnings } = await place.load({ file: place.write("toolcrib.json", { mcpServers }) });
    expect(codes(warnings)).toEqual([
      "plain_credential mcpServers.plain.env.GITHUB_TOKEN",
      "secret_in_args mcpServers.args.args[1]",
      "secret_in_args mcpServers.args.args[2]",
      "secret_in_args mcpServers.args.args[3]",
      "secret_in_args mcpServers.args.args[4]",
      "secret_in_args mcpServers.address.args[0]",
      "plain_credential mcpServers.header.headers.Authorization",
      "plain_credential mcpServers.auth.auth.token",
      "plain_credential mcpServers.key.auth.key",
      "secret_in_url mcpServers.query.url",
      "secret_in_url mcpServers.user.url",
      "secret_in_url mcpServers.path.url",
    ]);
    expect(JSON.stringify(warnings)).not.toContain("SECRET");
  });

  it("[spine-06e] tell of keys of models that are written out, and show nothing of them where they are wrong", async () => {
    const place = new Workplace();
    const agent = {
      model: { model: "a", apiKey: "sk-SECRET1", headers: { "X-Api-Key": "SECRET2", "X-Team": "a" } },
      models: ["anthropic/x", { model: "b", apiKey: "${KEY}" }, { model: "c", apiKey: "SECRET3" }],
    };
    const { warnings } = await place.load({ file: place.write("toolcrib.json", { agent }) });
    expect(codes(warnings)).toEqual([
      "plain_credential agent.model.apiKey",
      "plain_credential agent.model.headers.X-Api-Key",
      "plain_credential agent.models[2].apiKey",
    ]);
    expect(JSON.stringify(warnings)).not.toContain("SECRET");
    const wrong = place.write("toolcrib.json", { agent: { model: { model: "a", apiKey: 271828 } } });
    expect((await place.failure({ file: wrong })).message).not.toContain("271828");
  });

  it("[spine-06d] tell of http to a host that is not loopback", async () => {
    const urls = {
      a: "http://example.com/mcp",
      b: "http://localhost:3000/mcp",
      c: "http://127.0.0.1:1/mcp",
      d: "http://[::1]:1/mcp",
      e: "http://localhost.example.com/",
      f: "http://127.0.0.1.example.com/",
      g: "http://u@10.0.0.1/",
      h: "https://example.com",
      i: "HTTP://127.0.0.1/",
      j: "http://${HOST}/mcp",
    };
    const mcpServers = Object.fromEntries(Object.entries(urls).map(([id, url]) => [id, { url }]));
    const { warnings } = await new Workplace().load({ config: { mcpServers } });
    const insecure = warnings.filter(({ code }) => code === "insecure_url").map(({ path }) => path);
    expect(insecure).toEqual(["mcpServers.a.url", "mcpServers.e.url", "mcpServers.f.url", "mcpServers.g.url"]);
  });

  it("tell of keys without effect", async () => {
    const { warnings } = await new Workplace().load({
      config: { mcpServers: { a: { command: "x", headers: {} }, b: { url: "https://h", args: [] } } },
    });
    expect(codes(warnings)).toEqual(["unused_key mcpServers.a.headers", "unused_key mcpServers.b.args"]);
  });
});
