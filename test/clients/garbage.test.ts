import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLIENT_IDS } from "../../src/clients/agent-client.ts";
import { isJsonObject } from "../../src/model/json.ts";
import { client, LINUX } from "./fixture.ts";

/** Values with the words of the clients at every depth, so that garbage gets past the first look. */
const WORDS = [
  "mcpServers",
  "servers",
  "mcp",
  "mcp_servers",
  "context_servers",
  "extensions",
  "amp.mcpServers",
  "projects",
  "/home/ada/engine",
  "command",
  "args",
  "env",
  "envs",
  "env_keys",
  "env_vars",
  "url",
  "uri",
  "cmd",
  "headers",
  "type",
  "timeout",
  "name",
  "tools",
  "toolFilter",
  "requestOptions",
  "transport",
  "disabledMcpServers",
  "__proto__",
  "auth",
  "http_headers",
  "env_http_headers",
  "bearer_token_env_var",
  "include",
  "source",
  "id",
  "uses",
  "constructor",
];

const TEXTS = ["stdio", "builtin", "${env:A}", "{file:x}", "$A", "${input:b}", "${{ secrets.C }}", "", "npx"];

const { document } = fc.letrec<{ document: unknown }>((tie) => ({
  document: fc.oneof(
    { depthSize: "medium", withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, ...TEXTS),
    fc.string(),
    fc.array(tie("document"), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...WORDS), tie("document")), { maxLength: 6 })
      .map((entries) => Object.fromEntries(entries)),
    fc.dictionary(fc.string(), tie("document"), { maxKeys: 3 }),
  ),
}));

describe("any document", () => {
  it.each(CLIENT_IDS)("[skill-14a] %s: reading never throws, and gives entries and told problems only", (id) => {
    const of = client(id);
    const files = of.files(LINUX);
    fc.assert(
      fc.property(fc.oneof(document, fc.jsonValue()), fc.nat({ max: files.length - 1 }), (value, which) => {
        const file = files[which];
        if (file === undefined) return;
        const before = JSON.stringify(value);
        const { servers, problems } = of.read(value, file);
        expect(Object.values(servers).every(isJsonObject)).toBe(true);
        for (const entry of Object.values(servers)) {
          const target = [entry["command"], entry["url"], entry["serverUrl"], entry["httpUrl"]];
          expect(target.some((one) => one !== undefined)).toBe(true);
        }
        for (const { message } of problems) expect(message).not.toBe("");
        // The document belongs to the caller.
        expect(JSON.stringify(value)).toBe(before);
      }),
      { numRuns: 400 },
    );
  });

  it.each(CLIENT_IDS)("[skill-14a] %s: the container of its files, filled with garbage", (id) => {
    const of = client(id);
    for (const file of of.files(LINUX)) {
      const path = of.pathOf("x", file);
      fc.assert(
        fc.property(document, (entry) => {
          const whole = path
            .toReversed()
            .reduce<unknown>(
              (inner, step) =>
                typeof step === "string"
                  ? { [step]: inner }
                  : [isJsonObject(inner) ? { ...inner, [step.key]: step.is } : inner],
              entry,
            );
          const { servers, problems } = of.read(whole, file);
          expect(Object.keys(servers).every((key) => typeof key === "string")).toBe(true);
          if (!isJsonObject(entry)) expect(problems.length + Object.keys(servers).length).toBeGreaterThan(0);
        }),
        { numRuns: 100 },
      );
    }
  });
});
