import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { diffLines, maskConfig, maskValue } from "../../src/config/masked-diff.ts";
import { editorFor } from "../../src/files/edit/editors.ts";
import { jsonScalars } from "../../src/files/edit/json-edit.ts";
import { tomlScalars } from "../../src/files/edit/toml-edit.ts";
import { yamlScalars } from "../../src/files/edit/yaml-edit.ts";

const READERS = { jsonc: jsonScalars, json5: jsonScalars, yaml: yamlScalars, toml: tomlScalars } as const;
const FORMATS = Object.keys(READERS) as (keyof typeof READERS)[];
const M = "[redacted]";

describe("[joy-03a] the diff of a file that is one long line", () => {
  it("shows the part that differs", () => {
    const entry = (deny: string): string =>
      `{"a":"${"x y ".repeat(80)}","tools":{"deny":[${deny}]},"b":"${"z w ".repeat(80)}"}\n`;
    const [removed = "", added = ""] = diffLines(entry('"c"'), entry('"c","d"'));
    expect(removed).toMatch(/^- ….*"deny":\["c"\].*…$/);
    expect(added).toMatch(/^\+ ….*"deny":\["c","d"\].*…$/);
    expect(added.length).toBeLessThan(160);
  });
});

describe("[skill-14d] [skill-15b] a value in a diff", () => {
  it.each([
    // Where it stands.
    [["env", "ODD"], "blue", M],
    [["mcpServers", "x", "headers", "X-Team"], "abc", M],
    [["requestInit", "headers", "A"], "Bearer abc", M],
    [["env", "SWITCH"], "true", M],
    [["env", "EMPTY"], "", ""],
    [["env", "TOOLCRIB_HOME"], "/home/me/crib", "/home/me/crib"],
    [["password"], "p1", M],
    [["apiKeys", 0], "p1", M],
    [["maxTokens"], "4000", "4000"],
    [["auth"], "oauth", "oauth"],
    [["bearer_token_env_var"], "MY_TOKEN", "MY_TOKEN"],
    // References stay, and nothing beside them does.
    [["env", "A"], "${TOKEN}", "${TOKEN}"],
    [["env", "A"], "secret://keychain/toolcrib/A", "secret://keychain/toolcrib/A"],
    [["env", "A"], "${env:TOKEN}", "${env:TOKEN}"],
    [["env", "A"], "{env:TOKEN}", "{env:TOKEN}"],
    [["env", "A"], "$TOKEN", "$TOKEN"],
    [["headers", "Authorization"], "Bearer ${TOKEN}", "Bearer ${TOKEN}"],
    [["env", "A"], "${TOKEN:-hunter2}", `\${TOKEN:-${M}}`],
    [["env", "A"], "x${TOKEN}y", `${M}\${TOKEN}${M}`],
    [["api_key"], "x${TOKEN}", `${M}\${TOKEN}`],
    [["env", "A"], "$${TOKEN}", M],
    // What it looks like.
    [["args", 0], "postgres://u:pw@h/db", `postgres://${M}@h/db`],
    [["args", 0], "postgres://u:p@s/s@h/db", `postgres://${M}@h/db`],
    [["args", 0], "postgres://${U}:${P}@h", "postgres://${U}:${P}@h"],
    [["args", 0], "postgres://${U}:pw@h", `postgres://\${U}${M}@h`],
    [["args", 0], "https://h/@scope/pkg@1.2.3", "https://h/@scope/pkg@1.2.3"],
    [["args", 0], "git+ssh://git@github.com/a/b", "git+ssh://git@github.com/a/b"],
    [["url"], "https://h/mcp?team=blue&token=ab&k=${K}", `https://h/mcp?team=blue&token=${M}&k=\${K}`],
    [["url"], "https://h/s/3f0c1d2e-aaaa-4bbb-8ccc-1234567890ab/mcp", `https://h/s/${M}/mcp`],
    [["url"], "https://h/s/a1b2c3d4e5f6a7b8c9/mcp", `https://h/s/${M}/mcp`],
    [["args", 0], "--api-key=x", `--api-key=${M}`],
    [["args", 0], "API_KEY=x", `API_KEY=${M}`],
    [["args", 0], "X-Api-Key: x", `X-Api-Key: ${M}`],
    [["args", 0], "ghp_abcdefghijklmnopqrstuvwxyz", M],
    [["command"], "npx server --password hunter2 --port 80", `npx server --password ${M} --port 80`],
    [["userID"], "0123456789abcdef0123456789abcdef", M],
    // And what does not.
    [["args", 0], "@modelcontextprotocol/server-sequential-thinking@2025.7.1", ""],
    [["args", 0], "/nix/store/0a1b2c3d4e5f6a7b8c9d0e1f-x/bin/x", ""],
    [["args", 0], "docker.io/x@sha256:0123456789abcdef0123456789abcdef", ""],
    [["args", 0], "--port=8080", ""],
    [["description"], "Needs a token, and a password: ask.", ""],
  ] as const)("%j %s", (path, value, masked) => {
    expect(maskValue(value, { path })).toBe(masked === "" ? value : masked);
  });

  it.each([
    ["--api-key", "x", M],
    ["-token", "x", M],
    ["--token", "${T}", "${T}"],
    ["-e", "NAME=x", `NAME=${M}`],
    ["--env", "NAME", "NAME"],
    ["--header", "X-Team: blue", `X-Team: ${M}`],
    ["--port", "8080", "8080"],
    ["--max-tokens", "100", "100"],
  ] as const)("behind %s: %s", (before, value, masked) => {
    expect(maskValue(value, { path: ["args", 1], before })).toBe(masked);
  });
});

describe("[skill-14d] [skill-15b] the text of a config", () => {
  it("loses whatever stands in env, in every format, and keeps its lines", () => {
    const secret = fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }).map((text) => `§${text}§`);
    fc.assert(
      fc.property(fc.constantFrom(...FORMATS), secret, (format, value) => {
        const entry = { command: "npx", args: ["-y", "--token", value], env: { ODD: value, OTHER: "x" } };
        const { text } = editorFor(format).set("", ["mcpServers", "x"], entry);
        const masked = maskConfig(text, READERS[format]);
        expect(masked).not.toContain("§");
        expect(masked).toContain("npx");
        expect(masked.split("\n")).toHaveLength(text.split("\n").length);
      }),
      { numRuns: 300 },
    );
  });

  it("loses entries that are commented out, and keeps what people say", () => {
    const masked = maskConfig(`{
  // what I use at work
  // "env": { "ODD": "hunter2" }, "args": ["--api-key", "hunter2"]
  /* password: hunter2 */
  "a": { "command": "npx" } // pinned by hand
}`);
    expect(masked).not.toContain("hunter2");
    expect(masked).toContain("// what I use at work\n");
    expect(masked).toContain('"a": { "command": "npx" } // pinned by hand');
    const toml = maskConfig('# token = "hunter2"\na = 1 # api_key=hunter2\n', tomlScalars);
    expect(toml).toBe(`# token = "${M}"\na = 1 # api_key=${M}\n`);
    expect(maskConfig("# api_key: hunter2\na: 1\n", yamlScalars)).toBe(`# api_key: ${M}\na: 1\n`);
  });

  it("masks every line of a text that goes over several", () => {
    const yaml = "a:\n  env:\n    KEY: |\n      hunter2\n      hunter3\n  b: 1\n";
    expect(maskConfig(yaml, yamlScalars)).toBe(`a:\n  env:\n    KEY: ${M}\n      ${M}\n      ${M}\n  b: 1\n`);
    const comment = "# -----BEGIN PRIVATE KEY-----\n# aGVsbG8\n# -----END PRIVATE KEY-----\na: 1\n";
    expect(maskConfig(comment, yamlScalars)).toBe(`# ${M}\n${M}\n${M}\na: 1\n`);
  });

  it("of a text that cannot be read leaves less, not more", () => {
    expect(maskConfig('{ "a": "hunter2", "env": { "ODD": "hunter2"')).not.toContain("hunter2");
  });

  it("begins with a byte order mark or not", () => {
    expect(maskConfig('\uFEFF{"env": {"A": "hunter2"}}')).toBe(`{"env": {"A": "${M}"}}`);
  });
});

describe("[skill-15b] a diff", () => {
  it("shows that a secret changes, and not into what", () => {
    const of = (value: string): string => `{\n  "env": {\n    "A": "${value}"\n  }\n}\n`;
    expect(diffLines(of("one1"), of("two2"))).toEqual([
      "  {",
      '    "env": {',
      `-     "A": "${M}"`,
      `+     "A": "${M}"`,
      "    }",
      "  }",
    ]);
  });

  it("of a file of many lines shows the change alone", () => {
    const lines = Array.from({ length: 9000 }, (_, index) => `  "k${index}": ${index},`);
    const before = ["{", ...lines, '  "end": 1', "}"].join("\n");
    const after = ["{", ...lines.with(4500, '  "k4500": "new",'), '  "end": 1', "}"].join("\n");
    expect(diffLines(before, after)).toEqual([
      '    "k4498": 4498,',
      '    "k4499": 4499,',
      '-   "k4500": 4500,',
      '+   "k4500": "new",',
      '    "k4501": 4501,',
      '    "k4502": 4502,',
    ]);
  });
});
