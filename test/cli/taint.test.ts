import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ApiScene, apiScene, TOKENS, type Who } from "../doors/http/api/api-setup.ts";
import { type Finished, type Workspace, workspace } from "./run-cli.ts";

const ORIGIN = { server: "web", name: "web__get", read: ["https://example.com/\u202Ea"], callId: "c", at: 1000 };

let scene: ApiScene;
let place: Workspace;

beforeEach(async () => {
  scene = await apiScene({ servers: {} });
  place = workspace();
  scene.hub.session.markTainted(ORIGIN);
  await scene.hub.internals.taints.keep("notes", [ORIGIN]);
});
afterEach(() => scene.close());

const taint = (who: Who, ...args: string[]): Promise<Finished> =>
  place.runHere(["taint", ...args, "--hub", scene.url, "--token", TOKENS[who]]);

function errorOf(finished: Finished): { code: string; message: string } {
  return finished.json<{ error: { code: string; message: string } }>().error;
}

describe("[guard-20d] toolcrib taint", () => {
  it("lists what sessions and memory hold, and clears one by its id or its beginning", async () => {
    const { id } = scene.hub.session;
    const listed = await taint("admin");
    expect(listed).toMatchObject({ code: 0, stderr: expect.stringContaining("toolcrib taint clear <id>") });
    expect(listed.stdout).toMatch(/^KIND +ID +FROM +SINCE +READ\n/);
    expect(listed.stdout).toMatch(
      new RegExp(`session +${id} +web__get +1970-01-01T00:00:01.000Z +https://example.com/`),
    );
    expect(listed.stdout).toMatch(/memory +notes +web__get /);
    expect(listed.stdout).not.toContain("\u202E");
    expect((await taint("admin", "clear", "notes")).stdout).toBe("Cleared: memory notes\n");
    expect(scene.hub.internals.taints.memories()).toEqual([]);
    expect(scene.hub.session.taint).not.toBeNull();
    expect((await taint("admin", "clear", id.slice(0, 8), "--json")).json()).toEqual({ kind: "session", id });
    expect(scene.hub.session.taint).toBeNull();
    expect((await taint("admin", "--json")).json()).toEqual([]);
    const gone = await taint("admin", "clear", id, "--json");
    expect([gone.code, errorOf(gone).code]).toEqual([1, "not_found"]);
  });

  it("is refused to a token that may only call, and without a terminal to whoever has no token", async () => {
    const { id } = scene.hub.session;
    for (const args of [[], ["clear", id], ["clear", "notes"]]) {
      const lesser = await taint("call", ...args, "--json");
      expect([lesser.code, errorOf(lesser)]).toMatchObject([3, { message: 'This needs the scope "admin".' }]);
      const piped = await place.runHere(["taint", ...args, "--hub", scene.url, "--json"]);
      expect([piped.code, errorOf(piped).code]).toEqual([3, "denied"]);
      expect(errorOf(piped).message).toContain("needs a person");
    }
    // Not by the way around the command either.
    for (const body of [{ sessionId: id }, { memory: "notes" }]) {
      for (const who of ["call", "read", "reviewer"] as const) {
        expect((await scene.request(who, "POST", "/taint/clear", { body })).status, who).toBe(403);
      }
    }
    expect(scene.hub.session.taint).not.toBeNull();
    expect(scene.hub.internals.taints.memories()).toHaveLength(1);
  });

  it("says how it is used where the words are wrong", async () => {
    for (const args of [["clear"], ["forget", "notes"]]) {
      const wrong = await taint("admin", ...args, "--json");
      expect([wrong.code, errorOf(wrong).code], args.join(" ")).toEqual([2, "invalid_arguments"]);
    }
  });
});
