import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ClientFile, WrittenServer } from "../../../src/clients/agent-client.ts";
import { CLIENTS } from "../../../src/clients/clients.ts";
import { claudeCode } from "../../../src/clients/claude-code.ts";
import { cursor } from "../../../src/clients/json-clients.ts";
import {
  planRemove,
  planWrite,
  type RemoveRequest,
  type WriteRequest,
  type WrittenEntry,
} from "../../../src/hub/clients/client-files.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { TEXTS } from "../../cli/client-files.ts";

const file: ClientFile = { scope: "user", path: "/home/me/.cursor/mcp.json" };
const gateway: WrittenServer = { command: "/usr/bin/node", args: ["/opt/toolcrib/bin/toolcrib.js", "mcp"] };
const another: WrittenServer = { ...gateway, args: [...gateway.args, "--config", "/x.json"] };

/** A file and the records, as a home keeps them. */
class Kept {
  text: string | null;
  records: readonly WrittenEntry[] = [];

  constructor(text: string | null) {
    this.text = text;
  }

  write(servers: WriteRequest["servers"], more: Partial<WriteRequest> = {}): readonly string[] {
    const plan = planWrite(this.text, { client: cursor, file, servers, ...more }, this.records);
    const isNew = (entry: WrittenEntry): boolean => !plan.records.some(({ id }) => id === entry.id);
    this.records = [...this.records.filter(isNew), ...plan.records];
    if (plan.written.length > 0) this.text = plan.text;
    return plan.written;
  }

  remove(ids: readonly string[], more: Partial<RemoveRequest> = {}): ReturnType<typeof planRemove> {
    const plan = planRemove(this.text, { client: cursor, file, ids, ...more }, this.records);
    this.text = plan.text;
    this.records = plan.records;
    return plan;
  }
}

function codeOf(task: () => unknown): string {
  try {
    task();
  } catch (error) {
    if (error instanceof ToolcribError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "nothing was thrown";
}

const OWN = `{
  // mine
  "mcpServers": {
    "github": {"command": "npx", "args": ["-y", "gh"], /* v2 */ "env": {"GITHUB_TOKEN": "ghp_x"}},
  },
  "other": [1,2]
}`;

describe("[skill-15c] writing and taking out", () => {
  it.each([null, "", "{}", '{"mcpServers":{}}\n', OWN, `\uFEFF${OWN.replaceAll("\n", "\r\n")}`])(
    "gives back the bytes of %j",
    (text) => {
      const kept = new Kept(text);
      expect(kept.write({ toolcrib: gateway, files: another })).toEqual(["toolcrib", "files"]);
      expect(kept.text).toContain('"toolcrib"');
      expect(kept.remove(["toolcrib", "files"]).removed.toSorted()).toEqual(["files", "toolcrib"]);
      expect(kept.text).toBe(text);
      expect(kept.records).toEqual([]);
    },
  );

  const step = fc.record({ id: fc.constantFrom("a", "b", "c"), other: fc.boolean() });
  const order = fc.shuffledSubarray(["a", "b", "c"], { minLength: 3 });

  it.each(
    [
      ["cursor", null] as const,
      ["cursor", "{}\n"] as const,
      ["cursor", OWN] as const,
      ["codex", null] as const,
      ["goose", "# mine\n"] as const,
      ["continue", null] as const,
      ...Object.entries(TEXTS),
    ].map(([id, text]) => [id, text] as const),
  )("holds for %s in any order, with entries that are written anew in between: %j", (id, text) => {
    const client = CLIENTS.find((each) => each.id === id) ?? cursor;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), order, (steps, ids) => {
        const kept = new Kept(text);
        for (const { id: one, other } of steps) kept.write({ [one]: other ? another : gateway }, { client });
        for (const one of ids) kept.remove([one], { client });
        expect(kept.text).toBe(text);
      }),
      { numRuns: 60 },
    );
  });

  it.each(CLIENTS.map((client) => [client.id, client] as const))("works on a new file of %s", (_id, client) => {
    const place = { platform: "linux", home: "/home/me", env: {}, projectDir: "/work" } as const;
    for (const each of client.files(place)) {
      const kept = new Kept(null);
      kept.write({ toolcrib: gateway }, { client, file: each });
      expect(kept.text).toContain("toolcrib.js");
      expect(kept.write({ toolcrib: gateway }, { client, file: each })).toEqual([]);
      expect(kept.remove(["toolcrib"], { client, file: each }).removed).toEqual(["toolcrib"]);
      expect(kept.text).toBeNull();
    }
  });

  it("tells the scopes of one file apart", () => {
    const user: ClientFile = { scope: "user", path: "/home/me/.claude.json" };
    const local: ClientFile = { scope: "project", path: user.path, projectKey: "/work" };
    const kept = new Kept("{}");
    kept.write({ toolcrib: gateway }, { client: claudeCode, file: user });
    const both = planWrite(
      kept.text,
      { client: claudeCode, file: local, servers: { toolcrib: another } },
      kept.records,
    );
    expect(both.written).toEqual(["toolcrib"]);
    expect(JSON.parse(both.text)).toMatchObject({
      mcpServers: { toolcrib: { args: gateway.args } },
      projects: { "/work": { mcpServers: { toolcrib: { args: another.args } } } },
    });
  });
});

describe("[skill-14d] an entry that is there", () => {
  it("is left if it is as wanted, and brought up to date if it is ours and untouched", () => {
    const kept = new Kept(OWN);
    kept.write({ toolcrib: gateway });
    const once = kept.text;
    expect(kept.write({ toolcrib: gateway })).toEqual([]);
    expect(kept.text).toBe(once);
    expect(kept.write({ toolcrib: another })).toEqual(["toolcrib"]);
    expect(kept.text).toContain("--config");
    kept.remove(["toolcrib"]);
    expect(kept.text).toBe(OWN);
  });

  it("is a conflict if it is not ours; replaced on demand, and given back byte by byte", () => {
    const kept = new Kept(OWN);
    expect(codeOf(() => kept.write({ github: gateway }))).toMatch(/^conflict: .*mcp\.json .* did not write: github/);
    expect(kept.text).toBe(OWN);
    kept.write({ github: gateway }, { replace: true });
    expect(kept.text).not.toContain("ghp_x");
    kept.write({ github: another });
    kept.remove(["github"]);
    expect(kept.text).toBe(OWN);
  });

  it("that was replaced comes back with its value where the file was changed since", () => {
    const kept = new Kept(OWN);
    kept.write({ github: gateway }, { replace: true });
    kept.text = kept.text?.replace("[1,2]", "[3]") ?? null;
    kept.remove(["github"]);
    expect(kept.text).toContain("[3]");
    expect(kept.text).toContain("ghp_x");
  });

  it("that somebody edited is kept, and taken out with force", () => {
    const kept = new Kept(OWN);
    kept.write({ toolcrib: gateway });
    kept.text = kept.text?.replace("/usr/bin/node", "/my/node") ?? null;
    const edited = kept.text;
    expect(kept.remove(["toolcrib"])).toMatchObject({ removed: [], kept: [{ id: "toolcrib", reason: "edited" }] });
    expect(kept.text).toBe(edited);
    expect(codeOf(() => kept.write({ toolcrib: gateway }))).toMatch(/^conflict: .* edited since .*: toolcrib/);
    expect(kept.remove(["toolcrib"], { force: true }).removed).toEqual(["toolcrib"]);
    expect(kept.text).toBe(OWN);
  });

  it("keeps what its owner wrote around it", () => {
    const kept = new Kept(null);
    kept.write({ toolcrib: gateway });
    kept.text = kept.text?.replace('"mcpServers": {', '"mcpServers": {\n    "mine": {"command": "x"},') ?? null;
    kept.remove(["toolcrib"]);
    expect(JSON.parse(kept.text ?? "")).toEqual({ mcpServers: { mine: { command: "x" } } });
  });

  it("of somebody else is never taken out, unless forced and plainly Toolcrib", () => {
    const pasted = '{"mcpServers": {"toolcrib": {"command": "toolcrib", "args": ["mcp"]}, "x": {"command": "y"}}}';
    const kept = new Kept(pasted);
    expect(kept.remove(["toolcrib", "x", "gone"])).toMatchObject({
      removed: [],
      kept: [
        { id: "toolcrib", reason: "not ours" },
        { id: "x", reason: "not ours" },
      ],
      absent: ["gone"],
    });
    expect(kept.text).toBe(pasted);
    expect(kept.remove(["toolcrib", "x"], { force: true }).removed).toEqual(["toolcrib"]);
    expect(JSON.parse(kept.text ?? "")).toEqual({ mcpServers: { x: { command: "y" } } });
  });

  it("that is gone already, with or without its file, is no error", () => {
    const kept = new Kept(OWN);
    kept.write({ toolcrib: gateway });
    kept.text = OWN;
    expect(kept.remove(["toolcrib"])).toMatchObject({ removed: [], kept: [], absent: ["toolcrib"], text: OWN });
    expect(kept.records).toEqual([]);
    kept.write({ toolcrib: gateway });
    kept.text = null;
    expect(kept.remove(["toolcrib"])).toMatchObject({ absent: ["toolcrib"], text: null });
  });
});

describe("[skill-15b] a file that is not understood", () => {
  it.each([
    ['{\n  "mcpServers": {\n    nope\n  }\n}', /^invalid_config: \/home\/me\/\.cursor\/mcp\.json: line 3, column 5: /],
    ["[1, 2]", /^invalid_config: \/home\/me\/\.cursor\/mcp\.json: /],
    ['{"mcpServers": "none"}', /^invalid_config: \/home\/me\/\.cursor\/mcp\.json: /],
  ])("is refused by name: %j", (text, message) => {
    expect(codeOf(() => planWrite(text, { client: cursor, file, servers: { toolcrib: gateway } }, []))).toMatch(
      message,
    );
  });

  it("and what a client cannot do is said", () => {
    const desktop = CLIENTS.find(({ id }) => id === "claude-desktop") ?? cursor;
    const servers: WriteRequest["servers"] = { toolcrib: { url: "http://127.0.0.1:4700/mcp", transport: "http" } };
    expect(codeOf(() => planWrite(null, { client: desktop, file, servers }, []))).toMatch(
      /^invalid_arguments: Claude Desktop cannot reach a server by URL/,
    );
  });
});
