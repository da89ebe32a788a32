import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type NamedServer, Naming } from "../../src/catalog/naming.ts";
import { DEFAULT_NAMING } from "../../src/model/config.ts";

const PATTERN = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const NONE: ReadonlySet<string> = new Set();

function nameOf(servers: (string | NamedServer)[], server: string, tool: string, template = DEFAULT_NAMING): string {
  const naming = new Naming(
    template,
    servers.map((one) => (typeof one === "string" ? { id: one } : one)),
  );
  return naming.serverNames(server, [tool], NONE).get(tool) ?? "";
}

describe("template and prefix", () => {
  it.each([
    [DEFAULT_NAMING, undefined, "files__read_file"],
    ["mcp__{server}__{tool}", undefined, "mcp__files__read_file"],
    ["{tool}-of-{server}", undefined, "read_file-of-files"],
    ["{tool}", undefined, "read_file"],
    [DEFAULT_NAMING, "", "read_file"],
    ["mcp__{server}__{tool}", "", "read_file"],
    [DEFAULT_NAMING, "fs_", "fs_read_file"],
    ["mcp__{server}__{tool}", "fs_", "mcp__fs_read_file"],
    ["{tool}-of-{server}", "_fs", "read_file_fs"],
    ["x_{tool}", "fs_", "x_fs_read_file"],
  ])("[spine-14b] %s with prefix %j gives %s", (template, toolPrefix, expected) => {
    expect(nameOf([{ id: "files", toolPrefix }], "files", "read_file", template)).toBe(expected);
  });

  it("[spine-14b] other characters become -, and a name begins with a letter", () => {
    expect(nameOf(["my.server"], "my.server", "get weather/now")).toBe("my-server__get-weather-now");
    expect(nameOf(["7zip"], "7zip", "pack")).toBe("t-7zip__pack");
    expect(nameOf([{ id: "a", toolPrefix: "" }], "a", "_private")).toBe("t-_private");
    expect(nameOf([{ id: "a", toolPrefix: "" }], "a", "日本😀")).toBe("t----");
  });

  it("[spine-14b] reserved names are not for servers", () => {
    expect(nameOf(["skill"], "skill", "x")).toBe("t-skill__x");
    expect(nameOf([{ id: "a", toolPrefix: "" }], "a", "toolcrib_search")).toBe("t-toolcrib_search");
    expect(nameOf(["skills"], "skills", "x")).toBe("skills__x");
  });

  it("[spine-14b] a name that is too long is cut and gets a hash; one of 64 is left alone", () => {
    const long = nameOf(["files"], "files", "x".repeat(58));
    expect(long).toMatch(/^files__x{46}-[0-9a-f]{10}$/);
    expect(long).toHaveLength(64);
    expect(nameOf(["files"], "files", `${"x".repeat(58)}y`)).not.toBe(long);
    expect(nameOf(["files"], "files", "x".repeat(57))).toBe(`files__${"x".repeat(57)}`);
  });
});

describe("names that two could have", () => {
  it("[spine-14b] the more specific server owns the name; the other gets a hash even while the owner is down", () => {
    expect(nameOf(["a", "a__b"], "a__b", "c")).toBe("a__b__c");
    expect(nameOf(["a", "a__b"], "a", "b__c")).toMatch(/^a__b__c-[0-9a-f]{10}$/);
    expect(nameOf(["a", "a__b"], "a", "c")).toBe("a__c");
    expect(nameOf(["a"], "a", "b__c")).toBe("a__b__c");
  });

  it("[spine-14b] a server with bare names yields to the prefixes of others, and only there", () => {
    const servers = [{ id: "a", toolPrefix: "" }, { id: "files" }];
    expect(nameOf(servers, "files", "read")).toBe("files__read");
    expect(nameOf(servers, "a", "files__read")).toMatch(/-[0-9a-f]{10}$/);
    expect(nameOf(servers, "a", "read")).toBe("read");
  });

  it("[spine-14b] between equals the smaller id owns the names, in whatever order they are written", () => {
    for (const ids of [
      ["my.x", "my x"],
      ["my x", "my.x"],
    ]) {
      expect(nameOf(ids, "my x", "t")).toBe("my-x__t");
      expect(nameOf(ids, "my.x", "t")).toMatch(/^my-x__t-[0-9a-f]{10}$/);
      expect(
        new Naming(
          DEFAULT_NAMING,
          ids.map((id) => ({ id })),
        ).warnings(),
      ).toEqual([expect.stringMatching(/my x and my\.x .* Set another toolPrefix for my\.x/)]);
    }
    expect(new Naming(DEFAULT_NAMING, [{ id: "a" }, { id: "a__b" }, { id: "c", toolPrefix: "" }]).warnings()).toEqual(
      [],
    );
  });

  it("[spine-14b] a lead that was added cannot meet a server that has it in its id", () => {
    expect(nameOf(["7zip", "t-7zip"], "t-7zip", "x")).toBe("t-7zip__x");
    expect(nameOf(["7zip", "t-7zip"], "7zip", "x")).toMatch(/^t-7zip__x-[0-9a-f]{10}$/);
    expect(
      nameOf(
        [
          { id: "7z", toolPrefix: "7" },
          { id: "t", toolPrefix: "t" },
        ],
        "t",
        "-7x",
      ),
    ).toMatch(/^t-7x(-[0-9a-f]{10})?$/);
  });

  it("[spine-14b] a name that ends like a hash cannot meet a hashed one", () => {
    const hashed = nameOf(["a", "a__b"], "a", "b__c");
    expect(nameOf(["a", "a__b"], "a__b", hashed.slice("a__b__".length))).not.toBe(hashed);
  });

  it("[spine-14b] within one server the name that needed no change keeps it", () => {
    const naming = new Naming(DEFAULT_NAMING, [{ id: "s" }]);
    const names = naming.serverNames("s", ["a.b", "a-b", "a/b", "c.d"], NONE);
    expect(names.get("a-b")).toBe("s__a-b");
    expect(names.get("a.b")).toMatch(/^s__a-b-[0-9a-f]{10}$/);
    expect(names.get("a/b")).toMatch(/^s__a-b-[0-9a-f]{10}$/);
    expect(names.get("c.d")).toBe("s__c-d");
  });

  it("[spine-14b] in-process tools keep their names, and servers yield", () => {
    const naming = new Naming(DEFAULT_NAMING, [{ id: "files" }, { id: "bare", toolPrefix: "" }]);
    const taken = new Set(naming.localNames({ id: "local" }, ["files__read", "echo", "report-0123456789"]).values());
    expect([...taken]).toEqual(["files__read", "echo", "report-0123456789"]);
    expect(naming.serverNames("files", ["read", "write"], taken)).toEqual(
      new Map([
        ["read", expect.stringMatching(/^files__read-[0-9a-f]{10}$/)],
        ["write", "files__write"],
      ]),
    );
    expect(naming.serverNames("bare", ["echo"], taken).get("echo")).toMatch(/^echo-[0-9a-f]{10}$/);
  });
});

describe("for any servers and tools", () => {
  // Few characters, so that names meet often.
  const word = fc.string({
    unit: fc.constantFrom("a", "b", "_", "__", "-", "t-", "1", ".", "skill__"),
    minLength: 1,
    maxLength: 5,
  });
  const id = word.filter((text) => /^[A-Za-z0-9][A-Za-z0-9._@ -]{0,63}$/.test(text));
  const prefix = fc.option(
    fc.oneof(
      fc.constant(""),
      word.filter((text) => /^[A-Za-z0-9_-]*$/.test(text)),
    ),
    { nil: undefined },
  );
  const anyTool = fc.oneof(
    { weight: 8, arbitrary: word },
    { weight: 1, arbitrary: fc.string({ unit: "binary", minLength: 1 }) },
    { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom("a", "b"), minLength: 55, maxLength: 70 }) },
  );
  const server = fc.record({ id, toolPrefix: prefix, tools: fc.uniqueArray(anyTool, { maxLength: 8 }) });
  const servers = fc.uniqueArray(server, { selector: (one) => one.id, minLength: 1, maxLength: 5 });
  const template = fc.constantFrom(
    DEFAULT_NAMING,
    "mcp__{server}__{tool}",
    "{server}{tool}",
    "{tool}_{server}",
    "{tool}",
    "7{server}.{tool}",
  );

  it("[spine-14b] names are unique and provider-safe", () => {
    fc.assert(
      fc.property(servers, template, fc.uniqueArray(anyTool, { maxLength: 5 }), (all, form, locals) => {
        const naming = new Naming(form, all);
        const localNames = [
          ...naming
            .localNames(
              { id: "local" },
              locals.filter((name) => !/^(skill__|toolcrib_)/.test(name)),
            )
            .values(),
        ];
        const names = all.flatMap((one) => [...naming.serverNames(one.id, one.tools, new Set(localNames)).values()]);
        const everything = [...localNames, ...names];
        for (const name of everything) expect(name).toMatch(PATTERN);
        for (const name of names) expect(name).not.toMatch(/^(skill__|toolcrib_)/);
        expect(new Set(everything).size).toBe(everything.length);
      }),
      { numRuns: 3000 },
    );
  });

  it("[spine-14b] names do not depend on the order in which servers are written, nor on the tools of others", () => {
    fc.assert(
      fc.property(servers, template, (all, form) => {
        const [one, other] = [new Naming(form, all), new Naming(form, all.toReversed())];
        for (const { id: server, tools } of all) {
          const names = one.serverNames(server, tools, NONE);
          expect(other.serverNames(server, tools.toReversed(), NONE)).toEqual(names);
        }
      }),
    );
  });
});
