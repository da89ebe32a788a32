import { describe, expect, it } from "vitest";
import type { AskAnswer, AskRequest } from "../../../../src/model/decision.ts";
import { Redactor } from "../../../../src/secrets/redactor.ts";
import { type Place, place } from "../support.ts";
import { askRequest } from "../ask-request.ts";
import { approvalRoutes } from "./approval-routes.ts";

const BOSS = "boss-token-0123456789";
const USER = "user-token-0123456789";

async function scene(...waiting: AskRequest[]): Promise<Place & { answers: [string, AskAnswer][] }> {
  const redactor = new Redactor();
  redactor.addCredential("s3cret-value-of-a-tool");
  const { routes, answers } = approvalRoutes(waiting, redactor);
  const auth = { tokens: [{ token: BOSS, scopes: ["admin"] }, { token: USER }] };
  return { ...(await place({ auth }, { routes, redactor })), answers };
}

describe("[gate-10c] the approvals endpoint", () => {
  it("lists what waits, with secrets masked", async () => {
    const { ask } = await scene(askRequest("a1", { arguments: { path: "x", key: "s3cret-value-of-a-tool" } }));
    const answer = await ask("/api/v1/approvals", { token: BOSS });
    expect(answer.status).toBe(200);
    expect(answer.json<object>()).toMatchObject({
      approvals: [{ id: "a1", name: "files__delete", arguments: { path: "x", key: "[redacted]" } }],
    });
  });

  it.each(["once", "session", "always", "no"] as const)("answers one: %s", async (answer) => {
    const { ask, answers } = await scene(askRequest("a1"), askRequest("b2"));
    const given = await ask("/api/v1/approvals/b2", { method: "POST", token: BOSS, body: JSON.stringify({ answer }) });
    expect(given.status).toBe(200);
    expect(given.json<object>()).toEqual({ id: "b2", answer });
    expect(answers).toEqual([["b2", answer]]);
  });

  it("only for admin", async () => {
    const { ask, answers } = await scene(askRequest("a1"));
    const post = { method: "POST", body: '{"answer":"once"}' };
    expect((await ask("/api/v1/approvals")).status).toBe(401);
    expect((await ask("/api/v1/approvals/a1", post)).status).toBe(401);
    expect((await ask("/api/v1/approvals", { token: USER })).status).toBe(403);
    expect((await ask("/api/v1/approvals/a1", { ...post, token: USER })).status).toBe(403);
    expect(answers).toEqual([]);
  });

  it("an unknown id is 404, another path too", async () => {
    const { ask } = await scene(askRequest("a1"));
    const post = { method: "POST", token: BOSS, body: '{"answer":"once"}' };
    const unknown = await ask("/api/v1/approvals/zz", post);
    expect([unknown.status, unknown.json().error.code]).toEqual([404, "not_found"]);
    expect((await ask("/api/v1/approvals/a1/x", post)).status).toBe(404);
  });

  it.each([
    "",
    "once",
    "{",
    "null",
    "[]",
    '{"answer":"yes"}',
    '{"answer":["once"]}',
    '{"answer":"Once"}',
    '{"id":"a1"}',
  ])("a body of %j is 400 and answers nothing", async (body) => {
    const { ask, answers } = await scene(askRequest("a1"));
    const answer = await ask("/api/v1/approvals/a1", { method: "POST", token: BOSS, body });
    expect([answer.status, answer.json().error.code]).toEqual([400, "invalid_arguments"]);
    expect(answers).toEqual([]);
  });

  it("other methods are 405 with those that are possible", async () => {
    const { ask } = await scene(askRequest("a1"));
    const list = await ask("/api/v1/approvals", { method: "DELETE", token: BOSS });
    expect([list.status, list.headers["allow"]]).toEqual([405, "GET, HEAD"]);
    const one = await ask("/api/v1/approvals/a1", { method: "DELETE", token: BOSS });
    expect([one.status, one.headers["allow"]]).toEqual([405, "GET, HEAD, POST"]);
  });

  it("shows one whole, with secrets masked, to admin only", async () => {
    const long = "z".repeat(60_000);
    const { ask } = await scene(askRequest("a1", { arguments: { long, key: "s3cret-value-of-a-tool" } }));
    const one = await ask("/api/v1/approvals/a1", { token: BOSS });
    expect(one.json<object>()).toMatchObject({
      approval: askRequest("a1", { arguments: { long, key: "[redacted]" } }),
    });
    expect((await ask("/api/v1/approvals/a1", { token: USER })).status).toBe(403);
    expect((await ask("/api/v1/approvals/zz", { token: BOSS })).status).toBe(404);
  });

  it("[gate-08e] lists large calls by the beginning of each value, and says how much is left out", async () => {
    const secret = "s3cret-value-of-a-tool";
    const edge = "e".repeat(90) + secret + "e".repeat(200);
    const args = JSON.parse(`{"__proto__":"x","n":[${"1,".repeat(500)}2]}`);
    const { ask } = await scene(
      askRequest("a1", { arguments: { ...args, text: "z".repeat(1000), edge, short: secret } }),
      askRequest("b2", {
        name: `file:///${"n".repeat(1000)}`,
        arguments: { ["k".repeat(500)]: 1, ["k".repeat(501)]: 2 },
      }),
    );
    const text = (await ask("/api/v1/approvals", { token: BOSS })).text;
    expect(text).not.toContain("s3cret");
    const { approvals } = JSON.parse(text) as { approvals: AskRequest[] };
    const [second, first] = approvals;
    expect(Object.keys(first?.arguments ?? {})).toEqual(["__proto__", "n", "text", "edge", "short"]);
    expect(first).toMatchObject({
      shortened: true,
      arguments: {
        n: expect.stringMatching(/^\[1,1,.*… and 903 more characters$/),
        text: `${"z".repeat(100)}… and 900 more characters`,
        edge: expect.stringMatching(/^e+\[redacted\]… and 200 more characters$/),
        short: "[redacted]",
      },
    });
    expect(Object.values(second?.arguments ?? {})).toEqual([1, 2]);
    expect(second?.name).toContain("… and 508 more characters");
    expect(second).toMatchObject({ shortened: true });
  });

  it("[gate-08e] keeps the list short, whatever waits", async () => {
    const keys = Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`key${n}`, "\u0001".repeat(10)]));
    const huge = { a: "s3cret-value-of-a-tool".repeat(100_000), b: 1 };
    const { ask } = await scene(
      ...Array.from({ length: 100 }, (_, n) => askRequest(`k${n}`, { arguments: keys })),
      askRequest("huge", { arguments: huge }),
    );
    const answer = await ask("/api/v1/approvals?limit=1000", { token: BOSS });
    expect(answer.text.length).toBeLessThan(100 * 10_000);
    const { approvals } = answer.json<{ approvals: AskRequest[] }>();
    expect(approvals.at(-1)?.arguments["…"]).toMatch(/^2\d\d\d more keys$/);
    expect(approvals[0]?.arguments).toEqual({ a: "… 2200002 characters of JSON", b: 1 });
  });
});
