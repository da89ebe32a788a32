import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  differences,
  mergeDocuments,
  plainCredentialPaths,
  sharedPart,
} from "../../../src/hub/cluster/shared-document.ts";
import type { JsonObject } from "../../../src/model/json.ts";

describe("[scale-08a] the shared part of a config file", () => {
  it("is all of it but what is the node's own", () => {
    const document = {
      $schema: "./schema.json",
      store: "postgres://a/b",
      cluster: "nats://a",
      http: { host: "::", port: 1, publicUrl: "https://a", limits: { sessions: 2 } },
      limits: { callsPerMinute: 3 },
    };
    expect(sharedPart(document)).toEqual({ http: { limits: { sessions: 2 } }, limits: { callsPerMinute: 3 } });
    expect(sharedPart({ http: { port: 1 } })).toEqual({});
  });

  it("differs by its innermost values, and what is kept is not touched", () => {
    const from = { http: { port: 1, limits: { a: 1 } }, mcpServers: { a: { command: "a" }, b: { command: "b" } } };
    expect(differences(from, { mcpServers: { a: { command: "c" } } }, [["mcpServers", "b"]])).toEqual([
      { path: ["http", "limits"], value: undefined },
      { path: ["mcpServers", "a", "command"], value: "c" },
    ]);
    expect(differences(from, {}, [["mcpServers", "b"]])).toEqual([
      { path: ["http", "limits"], value: undefined },
      { path: ["mcpServers", "a"], value: undefined },
    ]);
  });

  it("of two nodes gets what either changed", () => {
    const base = { mcpServers: { a: { command: "a" }, b: { command: "b" } }, tools: { ask: ["x", "y"] } };
    const mine = { mcpServers: { a: { command: "a2" }, b: { command: "b" } }, tools: { ask: ["x", "y", "!one"] } };
    const theirs = { mcpServers: { a: { command: "a" }, c: { command: "c" } }, tools: { ask: ["y", "!two"] } };
    expect(mergeDocuments(base, mine, theirs)).toEqual({
      mcpServers: { a: { command: "a2" }, c: { command: "c" } },
      tools: { ask: ["y", "!two", "!one"] },
    });
  });

  it("never makes one server's entry of two, but for its rules", () => {
    const base = { mcpServers: { a: { command: "a", args: ["1"] } } };
    const mine = { mcpServers: { a: { command: "b", args: ["1"] } } };
    expect(mergeDocuments(base, mine, { mcpServers: { a: { command: "a", args: ["2"] } } })).toEqual(mine);
    const rules = { mcpServers: { a: { command: "a", args: ["1"], tools: { ask: ["x"] } } } };
    expect(mergeDocuments(base, mine, rules)).toEqual({
      mcpServers: { a: { command: "b", args: ["1"], tools: { ask: ["x"] } } },
    });
  });

  it("stays what it is where one side changed nothing, and edits lead from any document to any other", () => {
    const value = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom("x", "y", 1, true),
        fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom("a", "b", "mcpServers", "tools"), tie("value"), { maxKeys: 3 }),
      ),
    })).value;
    const document = fc.dictionary(fc.constantFrom("a", "b", "mcpServers", "tools"), value, { maxKeys: 3 });
    fc.assert(
      fc.property(document, document, (one, other) => {
        expect(mergeDocuments(one, one, other)).toEqual(other);
        expect(mergeDocuments(one, other, one)).toEqual(other);
        expect(apply(one, differences(one, other))).toEqual(other);
      }),
    );
  });

  it("leaves out what holds a credential in plain text", () => {
    const document = {
      mcpServers: {
        plain: { command: "a", env: { API_TOKEN: "correct-horse" } },
        sound: { command: "a", env: { API_TOKEN: "secret://env/API_TOKEN" } },
      },
      roles: { dev: { mcpServers: { mine: { url: "https://a", headers: { Authorization: "Bearer abcdefgh" } } } } },
      http: { auth: { tokens: [{ token: "plain-token" }] } },
      agent: { provider: { apiKey: "secret://env/KEY" } },
      limits: { callsPerMinute: 3 },
    };
    expect(plainCredentialPaths(document)).toEqual([
      ["mcpServers", "plain"],
      ["roles", "dev", "mcpServers", "mine"],
      ["http", "auth", "tokens"],
    ]);
  });

  it.each([
    { command: "a", environment: { API_TOKEN: "correct-horse" } },
    { command: "a", env: [{ name: "API_TOKEN", value: "correct-horse" }] },
    { command: ["a", "--api-token", "correct-horse"] },
    { httpUrl: "https://a", headers: ["Authorization: Bearer correct-horse"] },
    { httpUrl: "https://a", http_headers: { Authorization: "Bearer correct-horse" } },
    "a --api-token correct-horse",
  ])("[scale-08a] leaves out a credential in the form of another program: %j", (entry) => {
    const sound = { command: "a", environment: { API_TOKEN: "${env:API_TOKEN}" } };
    const dev = { mcpServers: { own: entry, sound } };
    expect(
      plainCredentialPaths({ mcpServers: { it: entry, sound }, servers: { it: entry, sound }, roles: { dev } }),
    ).toEqual([
      ["mcpServers", "it"],
      ["servers", "it"],
      ["roles", "dev", "mcpServers", "own"],
    ]);
  });
});

function apply(document: JsonObject, edits: ReturnType<typeof differences>): JsonObject {
  const draft = structuredClone(document);
  for (const { path, value } of edits) {
    let here: JsonObject = draft;
    for (const key of path.slice(0, -1)) here = here[key] as JsonObject;
    const last = path.at(-1) ?? "";
    if (value === undefined) delete here[last];
    else here[last] = value;
  }
  return draft;
}
