import { describe, expect, it } from "vitest";
import { MASK as MASK_OF_THE_HUB } from "../../../src/secrets/mask.ts";
import {
  configOf,
  draftOf,
  draftProblems,
  EMPTY_DRAFT,
  MASK,
  maskProblem,
  updatesOf,
} from "../../../web/src/views/servers/draft.ts";

const STDIO = {
  name: "Files",
  command: "npx",
  args: ["-y", "server"],
  env: { TOKEN: "secret://env/TOKEN" },
  tags: ["work"],
  restart: { max: 2 },
};

describe("a server's entry in the form", () => {
  it("[oper-09b] comes out as it went in, with keys that the form does not know", () => {
    expect(configOf(draftOf("files", STDIO))).toEqual(STDIO);
    const remote = { url: "https://example.com/mcp", transport: "sse", headers: { A: "${B}" }, autoConnect: false };
    expect(configOf(draftOf("remote", remote))).toEqual(remote);
  });

  it("leaves out rows without a name and keys of the other kind", () => {
    const draft = { ...draftOf("a", STDIO), env: [{ name: " ", value: "x" }], other: "" };
    expect(configOf(draft)).toEqual({ name: "Files", command: "npx", args: ["-y", "server"] });
    expect(configOf({ ...draft, kind: "url", url: " https://x.example/mcp " })).toEqual({
      name: "Files",
      url: "https://x.example/mcp",
    });
  });

  it("[oper-09b] sends only what changed, and null for what is gone", () => {
    const after = configOf({ ...draftOf("files", STDIO), name: "", args: ["-y", "other"] });
    expect(updatesOf(STDIO, after)).toEqual({ args: ["-y", "other"], name: null });
    expect(updatesOf(STDIO, configOf(draftOf("files", STDIO)))).toEqual({});
    expect(updatesOf({ id: "x", command: "a" }, { command: "a" })).toEqual({});
  });

  it("[oper-09b] sends of env and headers only the keys that changed, and never a mask", () => {
    const before = { command: "a", env: { TOKEN: MASK, OLD: "1", COLOUR: "green" } };
    const after = { command: "a", env: { TOKEN: MASK, COLOUR: "blue" } };
    expect(updatesOf(before, after)).toEqual({ env: { COLOUR: "blue", OLD: null } });
    expect(maskProblem(before, after)).toBeUndefined();
    expect(updatesOf(before, { command: "a" })).toEqual({ env: null });
    expect(maskProblem(before, { command: "a", env: { RENAMED: MASK } })).toMatch(/env is hidden/);
    expect(maskProblem({ url: "https://x" }, { url: "https://x", headers: { A: `Bearer ${MASK}` } })).toMatch(
      /headers/,
    );
    expect(MASK).toBe(MASK_OF_THE_HUB);
  });

  it("sends a login of another type as a whole, as the hub replaces it", () => {
    const before = { auth: { type: "oauth", clientId: "x", scopes: ["a"] } };
    expect(updatesOf(before, { auth: { type: "oauth", clientId: "y", scopes: ["a"] } })).toEqual({
      auth: { clientId: "y" },
    });
    const other = { auth: { type: "client-credentials", clientId: "x" } };
    expect(updatesOf(before, other)).toEqual(other);
  });

  it("[oper-09b] says what is missing or wrong, by field", () => {
    expect(Object.keys(draftProblems(EMPTY_DRAFT)).toSorted()).toEqual(["command", "id"]);
    expect(draftProblems({ ...draftOf("local", STDIO) }).id).toMatch(/reserved/);
    expect(draftProblems({ ...draftOf("ok", { url: "ftp://x" }) }).url).toMatch(/https/);
    expect(draftProblems({ ...draftOf("ok", STDIO), other: "[1]" }).other).toMatch(/JSON/);
    expect(draftProblems(draftOf("ok", STDIO))).toEqual({});
  });
});
