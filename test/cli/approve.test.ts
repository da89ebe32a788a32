import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { type HttpListener, openListener } from "../../src/doors/http/listener.ts";
import type { AskAnswer, AskRequest } from "../../src/model/decision.ts";
import { HttpSchema } from "../../src/model/config.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import { approvalRoutes } from "../doors/http/api/approval-routes.ts";
import { askRequest } from "../doors/http/ask-request.ts";
import { temporaryHome } from "../doors/http/support.ts";
import { type Finished, type Workspace, workspace } from "./run-cli.ts";

const BOSS = "boss-token-0123456789";
const USER = "user-token-0123456789";
const SCRIPT = "script-token-0123456789";

interface RunningHub {
  readonly listener: HttpListener;
  readonly answers: [string, AskAnswer][];
}

async function serve(home: string, waiting: AskRequest[], http: Record<string, unknown> = {}): Promise<RunningHub> {
  const redactor = new Redactor();
  const { routes, answers } = approvalRoutes(waiting, redactor);
  const listener = await openListener({
    http: HttpSchema.parse({ port: 0, ...http }),
    callsPerMinute: 100,
    routes,
    resolve: (text) => Promise.resolve(text),
    redactor,
    warn: () => {},
    home,
  });
  onTestFinished(() => listener.close());
  return { listener, answers };
}

/** At a terminal, where a question is answered with `o`. */
const approve = (place: Workspace, ...args: string[]): Promise<Finished> =>
  place.runHere(["approve", ...args], { typed: "o\n" });
/** As a script does, or an agent's shell. */
const piped = (place: Workspace, ...args: string[]): Promise<Finished> => place.runHere(["approve", ...args]);

function errorOf(finished: Finished): { code: string; message: string; hint?: string } {
  return finished.json<{ error: { code: string; message: string; hint?: string } }>().error;
}

describe("[gate-10c] toolcrib approve", () => {
  it("lists what waits at the one hub that runs, and needs no token for it", async () => {
    const place = workspace();
    await serve(place.home, [askRequest("3f2a-1"), askRequest("77bc-2", { held: true, arguments: { a: "\u202Eb" } })]);
    const listed = await approve(place);
    expect(listed).toMatchObject({ code: 0 });
    expect(listed.stdout).toMatch(
      /^ID +NAME +REQUESTED BY +CALL +UNTIL +ARGUMENTS\n3f2a-1 +files__delete +ops +waiting /,
    );
    expect(listed.stdout).toMatch(/77bc-2 .* refused for now /);
    expect(listed.stdout).not.toContain("\u202E");
    const json = await approve(place, "--json");
    expect(json.json<AskRequest[]>()).toMatchObject([
      askRequest("3f2a-1"),
      askRequest("77bc-2", { held: true, arguments: { a: "\u202Eb" } }),
    ]);
  });

  it("says so where nothing waits", async () => {
    const place = workspace();
    await serve(place.home, []);
    expect(await approve(place)).toMatchObject({ code: 0, stdout: "", stderr: "No calls are waiting for approval.\n" });
    expect((await approve(place, "--json")).json()).toEqual([]);
  });

  it("answers by id or by its beginning, as the person says", async () => {
    const place = workspace();
    const { answers } = await serve(place.home, [
      askRequest("3f2a-1"),
      askRequest("3f2b-2"),
      askRequest("9999-3", { held: true }),
    ]);
    expect(await approve(place, "3f2a-1")).toMatchObject({ code: 0, stdout: "Approved (once): files__delete\n" });
    expect((await approve(place, "3f2b", "--answer", "no")).stdout).toBe("Refused: files__delete\n");
    const held = await approve(place, "9999-3", "--answer", "always");
    expect(held.stderr).toContain("succeeds when it is made again");
    expect(answers).toEqual([
      ["3f2a-1", "once"],
      ["3f2b-2", "no"],
      ["9999-3", "always"],
    ]);
    const gone = await approve(place, "3f2a-1", "--json");
    expect([gone.code, errorOf(gone).code]).toEqual([1, "not_found"]);
  });

  it("shows the whole of the one that it is to answer; the list shows beginnings", async () => {
    const place = workspace();
    const path = `${"z".repeat(5000)}-end`;
    await serve(place.home, [askRequest("3f2a-1", { arguments: { path } })]);
    expect((await approve(place, "--json")).stdout).toContain("… and 4904 more characters");
    const approved = await approve(place, "3f2a-1");
    expect(approved).toMatchObject({ code: 0, stdout: "Approved (once): files__delete\n" });
    expect(approved.stderr).toContain(`arguments: {"path":"${path}"}`);
  });

  it("--json gives what was answered", async () => {
    const place = workspace();
    await serve(place.home, [askRequest("3f2a-1")]);
    expect((await approve(place, "3f2a", "--answer", "session", "--json")).json()).toEqual({
      id: "3f2a-1",
      name: "files__delete",
      answer: "session",
    });
  });

  it("wrong usage is exit 2, and nothing is answered", async () => {
    const place = workspace();
    const { answers } = await serve(place.home, [askRequest("3f2a-1"), askRequest("3f2a-2")]);
    for (const args of [
      ["3f2a"],
      ["3f2a-1", "--answer", "yes"],
      ["--answer", "once"],
      ["--hub", "nowhere"],
      ["a", "b"],
    ]) {
      expect((await approve(place, ...args)).code, args.join(" ")).toBe(2);
    }
    expect((await approve(place, "3f2", "--json")).code).toBe(1);
    expect(answers).toEqual([]);
  });

  it("no hub is exit 4, and one that is gone too", async () => {
    const place = workspace();
    const none = await approve(place, "--json");
    expect([none.code, errorOf(none).code]).toEqual([4, "server_unavailable"]);
    const { listener } = await serve(temporaryHome(), []);
    await listener.close();
    expect((await approve(place, "--hub", listener.url, "--token", BOSS)).code).toBe(4);
  });

  it("of several hubs one has to be chosen, and each gets its own token", async () => {
    const place = workspace();
    const one = await serve(place.home, [askRequest("aaaa-1")]);
    const other = await serve(place.home, [askRequest("bbbb-2")]);
    const unclear = await approve(place, "--json");
    expect(unclear.code).toBe(2);
    for (const { listener } of [one, other]) expect(errorOf(unclear).hint).toContain(`--hub ${listener.url}`);
    expect((await approve(place, "--hub", other.listener.url, "--json")).json<AskRequest[]>()).toMatchObject([
      { id: "bbbb-2" },
    ]);
    const byName = other.listener.url.replace("127.0.0.1", "localhost");
    expect((await approve(place, "bbbb-2", "--hub", `${byName}/`)).code).toBe(0);
    expect(other.answers).toHaveLength(1);
    expect(one.answers).toHaveLength(0);
  });

  it("a hub elsewhere needs a token with the scope approve, from the flag or the environment", async () => {
    const place = workspace();
    const auth = {
      tokens: [{ token: BOSS, scopes: ["admin"] }, { token: SCRIPT, scopes: ["approve"] }, { token: USER }],
    };
    const waiting = [askRequest("3f2a-1"), askRequest("77bc-2")];
    const { listener, answers } = await serve(temporaryHome(), waiting, { auth });
    const hub = ["--hub", listener.url];
    const none = await approve(place, ...hub, "--json");
    expect([none.code, errorOf(none).code]).toEqual([1, "unauthorized"]);
    for (const ask of [approve, piped]) {
      const lesser = await ask(place, ...hub, "--token", USER, "--json");
      expect([lesser.code, errorOf(lesser).code]).toEqual([3, "denied"]);
      for (const token of [BOSS, SCRIPT]) expect((await ask(place, ...hub, "--token", token)).code).toBe(0);
    }
    const fromEnv = await place.run(["approve", "3f2a-1", ...hub], { env: { TOOLCRIB_TOKEN: SCRIPT } });
    expect(fromEnv.code, fromEnv.stderr).toBe(0);
    // It changes the rules, which an approver may not.
    const lasting = await piped(place, "77bc-2", "--answer", "always", ...hub, "--token", SCRIPT, "--json");
    expect([lasting.code, errorOf(lasting).message]).toEqual([3, 'This needs the scope "admin".']);
    expect((await piped(place, "77bc-2", "--answer", "always", ...hub, "--token", BOSS)).code).toBe(0);
    expect(answers).toEqual([
      ["3f2a-1", "once"],
      ["77bc-2", "always"],
    ]);
  });

  it("[trust-07b] without a terminal it refuses, and does not take the hub's own token from its file", async () => {
    const place = workspace();
    const { answers, listener } = await serve(place.home, [askRequest("3f2a-1")]);
    for (const args of [
      [],
      ["3f2a-1"],
      ["3f2a-1", "--yes"],
      ["3f2a-1", "--answer", "once"],
      ["3f2a-1", "--answer", "always", "--yes", "--hub", listener.url],
    ]) {
      const refused = await piped(place, ...args, "--json");
      expect([refused.code, errorOf(refused).code], args.join(" ")).toEqual([3, "denied"]);
      expect(errorOf(refused).message).toContain("Approving a call needs a person");
      expect(refused.stdout + refused.stderr).not.toContain("3f2a-1");
      const asProcess = await place.run(["approve", ...args]);
      expect(asProcess.code, args.join(" ")).toBe(3);
    }
    expect(answers).toEqual([]);
    expect((await approve(place, "3f2a-1")).stdout).toBe("Approved (once): files__delete\n");
  });

  it("a token is never sent over plain http to another machine", async () => {
    const place = workspace();
    const refused = await approve(place, "--hub", "http://tools.example.com", "--token", BOSS, "--json");
    expect([refused.code, errorOf(refused).code]).toEqual([2, "invalid_arguments"]);
    expect(refused.stdout).not.toContain(BOSS);
  });

  it.each(["127.0.0.2", "127.1.2.3", "a.localhost"])(
    "the token of a hub's file does not go to %s at the hub's port, where another program may listen",
    async (host) => {
      const place = workspace();
      const { listener } = await serve(place.home, [askRequest("3f2a-1")]);
      const { port } = new URL(listener.url);
      const seen: (string | undefined)[] = [];
      const stranger = createServer((request, response) => {
        seen.push(request.headers.authorization);
        response.end("{}");
      });
      if (host.startsWith("127.")) {
        await new Promise<void>((resolve) => stranger.listen(Number(port), host, resolve));
        onTestFinished(() => void stranger.close());
      }
      const answer = await approve(place, "--hub", `http://${host}:${port}`, "--json");
      expect(answer.code).not.toBe(0);
      expect(seen).toEqual(host.startsWith("127.") ? [undefined] : []);
    },
  );

  it.each(["localhost", "[::1]"])(
    "by the name %s the hub itself is meant, at the address that it has",
    async (host) => {
      const place = workspace();
      const { listener } = await serve(place.home, [askRequest("3f2a-1")]);
      const { port } = new URL(listener.url);
      const stranger = createServer((_request, response) => void response.end("{}"));
      const listens = await new Promise<boolean>((resolve) => {
        stranger.once("error", () => resolve(false));
        stranger.listen(Number(port), "::1", () => resolve(true));
      });
      if (listens) onTestFinished(() => void stranger.close());
      const answer = await approve(place, "--hub", `http://${host}:${port}`, "--json");
      expect(answer.json<AskRequest[]>()).toMatchObject([{ id: "3f2a-1" }]);
    },
  );

  it("the token of a hub's file goes to that hub only", async () => {
    const place = workspace();
    await serve(place.home, [], { publicUrl: "https://tools.example.com/crib" });
    const seen: (string | undefined)[] = [];
    const stranger = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(200).end("<html>");
    });
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void stranger.close());
    const { port } = stranger.address() as AddressInfo;
    const answer = await approve(place, "--hub", `http://127.0.0.1:${port}`, "--json");
    expect([answer.code, errorOf(answer).code]).toEqual([4, "server_unavailable"]);
    expect(seen).toEqual([undefined]);
  });
});
