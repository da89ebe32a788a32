import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { only, parse } from "./support.ts";

describe("[skill-03a] the three levels", () => {
  it("a name", () => {
    const { servers, told } = parse(["filesystem", "memory"]);
    expect(told).toEqual([]);
    expect(servers.map(({ name, wellKnown }) => [name, wellKnown])).toEqual([
      ["filesystem", true],
      ["memory", true],
    ]);
  });

  it("a package", () => {
    const { servers, told } = parse([{ package: "@acme/mcp-server-tickets" }]);
    expect(told).toEqual([]);
    expect(servers).toEqual([
      {
        name: "tickets",
        package: "@acme/mcp-server-tickets",
        template: { command: "npx", args: ["-y", "@acme/mcp-server-tickets"] },
        parameters: [],
      },
    ]);
  });

  it("a full template, in kebab-case and in camelCase", () => {
    const template = {
      command: "npx",
      args: ["-y", "@acme/tickets", "${PROJECT}"],
      env: { TICKETS_TOKEN: "${TOKEN}" },
    };
    const parameters = {
      PROJECT: { description: "Which project", default: "${WORKSPACE}/tickets", example: "~/tickets" },
      TOKEN: { description: "Token", required: true, sensitive: true },
    };
    const rest = { name: "tickets", description: "Tickets", transport: "stdio", parameters };
    const kebab = parse([{ ...rest, "config-template": template }]);
    expect(kebab.told).toEqual([]);
    expect(kebab.servers).toEqual([
      {
        name: "tickets",
        package: "@acme/tickets",
        description: "Tickets",
        template,
        parameters: [
          {
            name: "PROJECT",
            description: "Which project",
            required: false,
            sensitive: false,
            default: "${WORKSPACE}/tickets",
            example: "~/tickets",
          },
          { name: "TOKEN", description: "Token", required: true, sensitive: true },
        ],
      },
    ]);
    expect(parse([{ ...rest, configTemplate: template }])).toEqual(kebab);
    expect(parse([{ ...rest, config_template: template }])).toEqual(kebab);
    expect(parse({ tickets: { ...rest, "config-template": template } })).toEqual(kebab);
  });

  it("a remote server", () => {
    const server = only([
      {
        name: "wiki",
        transport: "streamable-http",
        "config-template": {
          url: "https://wiki.example.com/${SPACE}/mcp",
          headers: { Authorization: "Bearer ${WIKI}" },
        },
        parameters: { SPACE: { default: "main" } },
      },
    ]);
    expect(server.template).toEqual({
      url: "https://wiki.example.com/${SPACE}/mcp",
      headers: { Authorization: "Bearer ${WIKI}" },
      transport: "http",
    });
    // By where it stands: the name alone does not say so.
    expect(server.parameters.find(({ name }) => name === "WIKI")).toMatchObject({ sensitive: true, implied: true });
  });

  it("docker beside a stdio fallback", () => {
    const stdio = { command: "node", args: ["${SKILL_DIR}/server.js"] };
    const docker = { image: "acme/tickets:2", port: 8080 };
    for (const value of [
      [{ name: "tickets", docker, stdio }],
      [{ name: "tickets", "config-template": { docker, stdio } }],
      [{ name: "tickets", docker: { image: "acme/tickets:2", port: "8080" }, ...stdio }],
    ]) {
      const { servers, told } = parse(value);
      expect(told).toEqual([]);
      expect(servers).toEqual([{ name: "tickets", docker, template: stdio, parameters: [] }]);
    }
    const alone = parse([{ name: "postgres", docker: "acme/postgres" }]);
    expect(alone.codes).toEqual(["CONTAINER_ONLY"]);
    expect(alone.servers).toEqual([{ name: "postgres", docker: { image: "acme/postgres" }, parameters: [] }]);
  });
});

describe("[skill-03a] flat forms", () => {
  it.each([
    ["name, command and args", { name: "t", command: "npx", args: ["-y", "@a/t"] }],
    ["command as a list", { name: "t", command: ["npx", "-y", "@a/t"] }],
    ["package beside a bare command", { name: "t", package: "@a/t", command: "npx" }],
    ["package alone", { name: "t", package: "@a/t" }],
    ["npm: before it", { name: "t", package: "npm:@a/t" }],
    ["a name with a package", { t: "@a/t" }],
    ["a name with an object", { t: { package: "@a/t" } }],
  ])("%s", (_, item) => {
    const { servers, told } = parse([item]);
    expect(told).toEqual([]);
    expect(servers).toEqual([
      { name: "t", package: "@a/t", template: { command: "npx", args: ["-y", "@a/t"] }, parameters: [] },
    ]);
  });

  it("package, args and env, with purpose for description", () => {
    const { servers, told } = parse([
      { package: "@a/t@2", args: ["--dir", "${CWD}"], env: { MODE: "fast" }, purpose: "For speed" },
    ]);
    expect(told).toEqual([]);
    expect(servers).toEqual([
      {
        name: "t",
        package: "@a/t@2",
        description: "For speed",
        template: { command: "npx", args: ["-y", "@a/t@2", "--dir", "${CWD}"], env: { MODE: "fast" } },
        parameters: [],
      },
    ]);
  });

  it("more keys beside `- name: package`", () => {
    expect(only([{ files: "@a/t", purpose: "For files", args: ["x"] }])).toMatchObject({
      name: "files",
      description: "For files",
      template: { args: ["-y", "@a/t", "x"] },
    });
  });

  it("a map of names, a single text, a text with commas, a single object", () => {
    expect(
      parse({ filesystem: null, tickets: "@a/t", wiki: "https://w.example/mcp" }).servers.map((s) => s.name),
    ).toEqual(["filesystem", "tickets", "wiki"]);
    expect(only("memory").wellKnown).toBe(true);
    expect(parse("memory, fetch").servers.map((s) => s.name)).toEqual(["memory", "fetch"]);
    expect(only({ name: "t", package: "@a/t" }).name).toBe("t");
    expect(only("https://mcp.acme.com/mcp")).toMatchObject({
      name: "acme",
      template: { url: "https://mcp.acme.com/mcp" },
    });
    expect(only("npx -y @a/thing --fast")).toMatchObject({
      name: "thing",
      template: { command: "npx", args: ["-y", "@a/thing", "--fast"] },
    });
  });

  it.each([
    ["pypi:mcp-server-x", "uvx", ["mcp-server-x"]],
    ["uvx mcp-server-x", "uvx", ["mcp-server-x"]],
    ["pypi:mcp-server-x==1.2", "uvx", ["mcp-server-x==1.2"]],
    ["mcp-server-x", "npx", ["-y", "mcp-server-x"]],
  ])("%s is started with the program of its registry", (text, command, args) => {
    expect(only([{ name: "x", package: text }]).template).toEqual({ command, args });
  });

  it("command: uvx decides where a package comes from", () => {
    expect(only([{ name: "x", package: "some-tool", command: "uvx", args: [] }]).template).toEqual({
      command: "uvx",
      args: ["some-tool"],
    });
  });

  it("env as lists, and without values", () => {
    const wanted = { API_HOST: "${API_HOST}", MODE: "fast" };
    for (const env of [
      ["API_HOST", "MODE=fast"],
      [{ name: "API_HOST" }, { name: "MODE", value: "fast" }],
      { API_HOST: null, MODE: "fast" },
      { API_HOST: { description: "Where", required: true }, MODE: "fast" },
    ]) {
      const server = only([{ name: "t", command: "t", env }]);
      expect(server.template?.env).toEqual(wanted);
      expect(server.parameters).toMatchObject([{ name: "API_HOST", required: true, sensitive: false }]);
    }
  });

  it("a whole command line in command, with a warning", () => {
    const { servers, codes } = parse([{ name: "t", command: "npx -y @a/t" }]);
    expect(codes).toEqual(["COMMAND_LINE"]);
    expect(servers[0]?.template).toEqual({ command: "npx", args: ["-y", "@a/t"] });
    expect(only([{ name: "t", command: "/opt/my tools/server" }]).template).toEqual({
      command: "/opt/my tools/server",
    });
  });
});

describe("[skill-03c] well-known names", () => {
  it("become templates", () => {
    expect(only(["github"])).toMatchObject({
      name: "github",
      package: "@modelcontextprotocol/server-github",
      template: { command: "npx", env: { GITHUB_PERSONAL_ACCESS_TOKEN: "${GITHUB_PERSONAL_ACCESS_TOKEN}" } },
      parameters: [{ name: "GITHUB_PERSONAL_ACCESS_TOKEN", required: true, sensitive: true }],
      wellKnown: true,
    });
    expect(only(["git"]).template).toEqual({
      command: "uvx",
      args: ["mcp-server-git", "--repository", "${REPOSITORY}"],
    });
    expect(only(["PostgreSQL"])).toMatchObject({
      name: "PostgreSQL",
      package: "@modelcontextprotocol/server-postgres",
    });
  });

  it("are known by their package too, in any version", () => {
    expect(only([{ package: "@modelcontextprotocol/server-postgres@0.6.2" }])).toMatchObject({
      name: "postgres",
      package: "@modelcontextprotocol/server-postgres@0.6.2",
      template: { args: ["-y", "@modelcontextprotocol/server-postgres@0.6.2", "${DATABASE_URL}"] },
      parameters: [{ name: "DATABASE_URL", sensitive: true }],
    });
  });

  it("take the skill's own parameters and arguments", () => {
    const own = only([
      { name: "filesystem", parameters: { ROOT: { description: "Notes", default: "${HOME}/notes" } } },
    ]);
    expect(own.parameters).toMatchObject([{ name: "ROOT", description: "Notes", default: "${HOME}/notes" }]);
    const withArgs = only([{ name: "filesystem", args: ["${CWD}"] }]);
    expect(withArgs.template?.args).toEqual(["-y", "@modelcontextprotocol/server-filesystem", "${CWD}"]);
    expect(withArgs.parameters).toEqual([]);
    const isSensitiveStill = only([
      { name: "github", parameters: { GITHUB_PERSONAL_ACCESS_TOKEN: { sensitive: false, default: "x" } } },
    ]);
    expect(isSensitiveStill.parameters).toMatchObject([{ sensitive: true }]);
    expect(isSensitiveStill.parameters[0]).not.toHaveProperty("default");
  });

  it("unknown names say so and have no template", () => {
    const { servers, told } = parse(["frobnicator", { name: "other", purpose: "Unsaid" }]);
    expect(servers).toEqual([
      { name: "frobnicator", parameters: [] },
      { name: "other", description: "Unsaid", parameters: [] },
    ]);
    expect(told.map(({ code, path }) => [code, path])).toEqual([
      ["UNKNOWN_SERVER", [0]],
      ["UNKNOWN_SERVER", [1]],
    ]);
  });
});

describe("what is wrong", () => {
  it("unknown keys are told of where they stand", () => {
    const { servers, told } = parse([
      { name: "t", command: "t", colour: "red", "config-template": { args: ["a"], x: 1 } },
    ]);
    expect(servers[0]?.template).toEqual({ command: "t", args: ["a"] });
    expect(told.map(({ code, path }) => [code, path])).toEqual([
      ["UNKNOWN_SERVER_FIELD", [0, "config-template", "x"]],
      ["UNKNOWN_SERVER_FIELD", [0, "colour"]],
    ]);
  });

  it("wrong values are left out, and the rest is used", () => {
    const { servers, codes } = parse([
      5,
      null,
      [],
      {},
      { name: "t", command: "t", args: ["a", {}, 7, true], env: "x", transport: "pigeon", docker: { port: 99999999 } },
      { name: "t", command: "twin" },
      { args: ["only"] },
    ]);
    expect(servers).toEqual([{ name: "t", template: { command: "t", args: ["a", "7", "true"] }, parameters: [] }]);
    expect(codes).toContain("DUPLICATE_SERVER");
    expect(codes).toContain("INVALID_SERVER");
    expect(codes).toContain("INVALID_DOCKER");
    expect(codes.filter((code) => code === "INVALID_TYPE")).toHaveLength(7);
  });

  it("an option is no package", () => {
    const { servers, codes } = parse([
      { name: "t", package: "--registry=https://x.example" },
      { name: "u", package: "-p" },
    ]);
    expect(servers.every(({ template }) => template === undefined)).toBe(true);
    expect(codes).toEqual(["INVALID_TYPE", "UNKNOWN_SERVER", "INVALID_TYPE", "UNKNOWN_SERVER"]);
  });

  it("names become ids", () => {
    const { servers, codes } = parse([
      { name: "my/server!", command: "x" },
      { name: "local", command: "x" },
      { name: "???", command: "x" },
    ]);
    expect(servers.map(({ name }) => name)).toEqual(["my-server", "local-server"]);
    expect(codes).toEqual(["INVALID_SERVER_NAME", "INVALID_SERVER_NAME", "INVALID_SERVER"]);
  });

  it("nothing throws, whatever comes", () => {
    const key = fc.oneof(
      fc.constantFrom(
        ...["name", "package", "command", "args", "env", "url", "headers", "config-template", "parameters", "docker"],
        ...["default", "sensitive", "stdio", "image", "port", "transport", "required", "__proto__", "constructor"],
      ),
      fc.string({ maxLength: 5 }),
    );
    const leaf = fc.oneof(
      fc.constantFrom("${A}", "${TOKEN:-x}", "$${", "npx", "npx -y a", "@a/b", "https://x.example", "pypi:x", "true"),
      fc.string({ maxLength: 12 }),
      fc.constant(null),
      fc.integer(),
      fc.double(),
      fc.boolean(),
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.array(tie("tree"), { maxLength: 4 }),
        fc.dictionary(key, tie("tree"), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        for (const server of parse(value).servers) {
          expect(server.name).toMatch(/^[A-Za-z0-9]/);
          for (const one of server.parameters) expect(one.sensitive && one.default !== undefined).toBe(false);
        }
      }),
      { numRuns: 1500 },
    );
  });
});
