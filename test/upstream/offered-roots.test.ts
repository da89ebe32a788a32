import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import {
  ServerEntrySchema,
  type ServerEntryInput,
  SESSION_ORIGIN,
  type ServerSpec,
} from "../../src/model/server-spec.ts";
import type { ClientSide } from "../../src/model/source.ts";
import {
  ALL_CAPABILITIES,
  capabilitiesFor,
  withOfferedAnswers,
  withOfferedRoots,
} from "../../src/upstream/server-requests.ts";

const spec = (entry: ServerEntryInput = {}, more: Partial<ServerSpec> = {}): ServerSpec => ({
  ...ServerEntrySchema.parse({ command: "x", ...entry }),
  id: "files",
  origin: { file: "/etc/toolcrib.json", dialect: "toolcrib" },
  baseDir: "/home/ada/project",
  ...more,
});
const WIDE = { uri: "file:///" };
const client = (more: Partial<ClientSide> = {}): ClientSide => ({
  key: "client",
  capabilities: { roots: { listChanged: true }, sampling: {} },
  listRoots: async () => ({ roots: [WIDE] }),
  sample: async () => ({}),
  ...more,
});
const workspaceRoots = [{ uri: "file:///srv/work", name: "work" }];
const context = { server: "files", signal: new AbortController().signal };
const rootsOf = async (side: ClientSide): Promise<unknown> => (await side.listRoots?.(context))?.["roots"];

describe("[trust-09b] the client that a server sees", () => {
  it("has the roots of the entry, whatever its own are", async () => {
    const listed = withOfferedRoots(client(), spec({ roots: ["./notes", "~/wiki", "/srv/x", "git://host/repo"] }), {
      env: { HOME: "/home/ada" },
    });
    expect(await rootsOf(listed)).toEqual([
      { uri: "file:///home/ada/project/notes", name: "notes" },
      { uri: "file:///home/ada/wiki", name: "wiki" },
      { uri: "file:///srv/x", name: "x" },
      { uri: "git://host/repo" },
    ]);
    expect(listed.capabilities).toEqual({ roots: {}, sampling: {} });
    const none = withOfferedRoots(client(), spec({ roots: false }), { env: {}, workspaceRoots });
    expect([none.listRoots, none.capabilities, none.key]).toEqual([undefined, { sampling: {} }, "client"]);
    expect(none.sample).toBeDefined();
  });

  it("has its own only if it may lend them, or the entry asks for them", async () => {
    const guest = client({ rootsOnRequest: true });
    for (const [side, entry, more, expected] of [
      [client(), {}, {}, [WIDE]],
      [guest, {}, {}, workspaceRoots],
      [guest, { roots: "session" }, {}, [WIDE]],
      [guest, {}, { origin: SESSION_ORIGIN }, [WIDE]],
      [{ key: "plain", capabilities: {} }, {}, {}, workspaceRoots],
    ] as const) {
      expect(await rootsOf(withOfferedRoots(side, spec(entry, more), { env: {}, workspaceRoots }))).toEqual(expected);
    }
    expect(await rootsOf(withOfferedRoots(guest, spec(), { env: {} }))).toBeUndefined();
  });

  it("stays one whose open question can be seen", () => {
    let waiting = false;
    const asked = { ...client({ rootsOnRequest: true }), isWaiting: () => waiting };
    const seen = withOfferedRoots(asked, spec(), { env: {} });
    expect(seen.isWaiting?.()).toBe(false);
    waiting = true;
    expect(seen.isWaiting?.()).toBe(true);
  });

  it("cannot send its roots along as an answer that nobody asked for", () => {
    const responses: JsonObject = { a: { roots: [WIDE] }, b: { action: "accept", content: { roots: ["x"] } } };
    const sent = (entry: ServerEntryInput, side = client()): JsonObject =>
      withOfferedAnswers(responses, side, spec(entry), { env: {}, workspaceRoots });
    expect(sent({ roots: false })).toEqual({ ...responses, a: { roots: [] } });
    expect(sent({}, client({ rootsOnRequest: true }))).toEqual({ ...responses, a: { roots: workspaceRoots } });
    expect(sent({})).toEqual(responses);
  });
});

describe("[trust-09b] what a server is told at the start", () => {
  it("follows its entry", () => {
    const { roots: _, ...others } = ALL_CAPABILITIES;
    expect(capabilitiesFor(ALL_CAPABILITIES, spec())).toEqual(ALL_CAPABILITIES);
    expect(capabilitiesFor(ALL_CAPABILITIES, spec({ roots: false }))).toEqual(others);
    expect(capabilitiesFor(ALL_CAPABILITIES, spec({ roots: [] }))).toEqual(others);
    expect(capabilitiesFor(others, spec({ roots: ["."] }))).toEqual({ ...others, roots: {} });
    expect(capabilitiesFor(others, spec({ roots: "session" }))).toEqual(ALL_CAPABILITIES);
  });

  it("holds no references: a root is a plain folder", () => {
    for (const roots of [["${HOME}/x"], ["secret://env/X"], [""], "all", true]) {
      expect(ServerEntrySchema.safeParse({ command: "x", roots }).success).toBe(false);
    }
  });
});
