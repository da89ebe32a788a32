/** Notices of calls that wait, sent to a receiver on this machine that checks them, and answers by their links. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ApprovalNotices } from "../../../src/doors/http/approval-notices.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { ConfigSchema } from "../../../src/model/config.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";
import { type Answer as DoubleAnswer, HttpDouble } from "../../doubles/http-double.ts";
import { type Answer, type Place, place } from "./support.ts";

const waitFor = (check: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(check, { timeout: 60_000, interval: 5 });

const SECRET = "webhook-secret-0123456789";

interface Scene extends Place {
  readonly hub: Hub;
  readonly receiver: HttpDouble;
  readonly session: Session;
  readonly warned: string[];
  /** Asks; resolves with how the call ended. */
  call(args?: JsonObject): Promise<string>;
  post(path: string, token: string): Promise<Answer>;
  /** The bodies that arrived. */
  bodies<Body = WebhookBody>(): Body[];
}

interface WebhookBody {
  readonly type: string;
  readonly delivery: string;
  readonly approval: {
    readonly id: string;
    readonly name: string;
    readonly session: JsonObject;
    readonly arguments?: JsonObject;
    readonly risks?: readonly JsonObject[];
  };
  readonly waiting: number;
  readonly links: { readonly page: string; readonly allowOnce: string; readonly deny: string };
}

interface SceneOptions {
  readonly notify?: (url: string) => JsonObject;
  readonly answer?: () => DoubleAnswer;
  readonly pausesMs?: readonly number[];
  readonly askTimeout?: number;
  readonly http?: Record<string, unknown>;
}

const webhook = (url: string): JsonObject => ({
  phone: { type: "webhook", url: `${url}/hook`, secret: "secret://env/HOOK_SECRET", arguments: true, answers: true },
});

async function scene(options: SceneOptions = {}): Promise<Scene> {
  const { notify = webhook, answer = () => ({ status: 200 }), pausesMs = [5, 5, 5], askTimeout = 60_000 } = options;
  const receiver = await new HttpDouble(answer).start();
  const redactor = new Redactor();
  const warned: string[] = [];
  const hub = await createHub(
    {
      tools: { ask: ["send"], askTimeout },
      // What a test gives is checked by the schema.
      approvals: { notify: notify(receiver.url) as never },
    },
    {
      redactor,
      env: { ...process.env, HOOK_SECRET: SECRET, HOOK_URL: `${receiver.url}/services/T0/B0/hook-key-0123456789` },
    },
  );
  onTestFinished(() => hub.close());
  hub.registry.register({
    name: "send",
    description: "Sends it.",
    parameters: { type: "object" },
    execute: async () => ({ content: [{ type: "text", text: "sent" }] }),
  });
  let base = "";
  const notices = new ApprovalNotices({
    hub,
    base: () => base,
    secret: Buffer.alloc(32, 7),
    warn: (message) => warned.push(message),
    pausesMs,
  });
  onTestFinished(() => notices.close());
  const opened = await place(options.http ?? {}, { routes: notices.routes, redactor });
  base = `${opened.url}/crib`;
  const session = hub.openSession({
    door: "mcp",
    user: "ada",
    owner: true,
    onAsk: () => new Promise(() => {}),
    clientInfo: { name: "claude-code", version: "1.0" },
    workspaceDir: "/home/ada/work",
  });
  return {
    ...opened,
    hub,
    receiver,
    session,
    warned,
    async call(args = {}) {
      const outcome = await hub.call({ session, name: "send", arguments: args });
      return outcome.ok ? JSON.stringify(outcome.result.content) : outcome.error.code;
    },
    post: (path, token) =>
      opened.ask(`/api/v1/approval-links${path}`, { method: "POST", body: JSON.stringify({ token }) }),
    bodies: <Body>() => receiver.asked.map(({ body }) => JSON.parse(body) as Body),
  };
}

const tokenOf = (link: string): string => link.split("#")[1] ?? "";

async function firstBody({ receiver, bodies }: Scene): Promise<WebhookBody> {
  await waitFor(() => expect(receiver.asked).toHaveLength(1));
  const [body] = bodies();
  if (body === undefined) throw new Error("Nothing arrived.");
  return body;
}

describe("[joy-04c] a webhook", () => {
  it("has who asks, what for, the risky parts and links, signed with the time", async () => {
    const all = await scene();
    const done = all.call({ path: "/etc/passwd", password: "hunter2-hunter2" });
    const body = await firstBody(all);
    const [asked] = all.receiver.asked;
    const [headers, text] = [asked?.headers ?? {}, asked?.body ?? ""];
    const [, time = "", given = ""] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["toolcrib-signature"])) ?? [];
    const expected = createHmac("sha256", SECRET).update(`${time}.${text}`).digest();
    expect(timingSafeEqual(Buffer.from(given, "hex"), expected)).toBe(true);
    expect(Math.abs(Number(time) * 1000 - Date.now())).toBeLessThan(300_000);
    expect(headers["toolcrib-event"]).toBe("approval.requested");
    expect(body).toMatchObject({
      type: "approval.requested",
      waiting: 1,
      approval: {
        name: "send",
        session: { door: "mcp", user: "ada", client: { name: "claude-code" } },
        arguments: { path: "/etc/passwd", password: "[redacted]" },
        risks: [{ risk: "outside", at: ["path"] }],
      },
      links: { page: `${all.url}/crib/approvals` },
    });
    expect(text).not.toContain("hunter2");
    expect(body.links.deny).toMatch(/\/crib\/answer#[\w-]+\.[\w-]+$/);
    all.hub.approvals.answer(body.approval.id, "no");
    expect(await done).toBe("denied");
  });

  it("says nothing of the arguments unless it is asked to", async () => {
    const all = await scene({
      notify: (url) => ({ quiet: { type: "webhook", url, secret: "secret://env/HOOK_SECRET" } }),
    });
    void all.call({ path: "/etc/unusual-name" });
    const body = await firstBody(all);
    expect(JSON.stringify(body)).not.toContain("unusual-name");
    expect(Object.keys(body.links)).toEqual(["page"]);
  });
});

describe("[joy-04d] a link", () => {
  it("shows the call, and answers it only by the POST that answers, once, in the name of its notice", async () => {
    const all = await scene();
    const done = all.call({ to: "bob" });
    const { links, approval } = await firstBody(all);
    const token = tokenOf(links.allowOnce);
    expect((await all.ask(`/api/v1/approval-links/answer?token=${token}`)).status).toBe(405);
    const shown = await all.post("", token);
    expect(shown.status).toBe(200);
    expect(shown.json<object>()).toMatchObject({
      answer: "once",
      notice: "phone",
      approval: { arguments: { to: "bob" } },
    });
    expect(all.hub.approvals.pending()).toHaveLength(1);

    const given = await all.post("/answer", token);
    expect([given.status, given.json<object>()]).toEqual([200, { id: approval.id, answer: "once" }]);
    expect(await done).toContain("sent");
    for (const path of ["", "/answer"]) {
      const again = await all.post(path, token);
      expect([again.status, again.json().error.code]).toEqual([404, "not_found"]);
    }
    expect((await all.post("/answer", tokenOf(links.deny))).status).toBe(404);
    const decisions = (await all.hub.audit.query({ type: "decision", limit: 10, order: "newest" })).entries;
    expect(decisions[0]).toMatchObject({ answer: "once", answeredBy: "phone", answeredThrough: "notice" });
  });

  it("answers at most once when it is opened many times at once", async () => {
    const all = await scene();
    const done = all.call();
    const { links } = await firstBody(all);
    const tokens = [links.allowOnce, links.deny, links.allowOnce, links.deny, links.allowOnce].map(tokenOf);
    const statuses = await Promise.all(tokens.map(async (token) => (await all.post("/answer", token)).status));
    expect(statuses.toSorted()).toEqual([200, 404, 404, 404, 404]);
    await done;
  });

  it("is for this call and this answer: a changed, foreign or late one does nothing", async () => {
    const all = await scene({ askTimeout: 1500 });
    const done = all.call();
    const { links, approval } = await firstBody(all);
    const token = tokenOf(links.deny);
    const [text = "", signature = ""] = token.split(".");
    const [, , notice, until] = JSON.parse(Buffer.from(text, "base64url").toString()) as unknown[];
    const turned = Buffer.from(JSON.stringify([approval.id, "once", notice, until])).toString("base64url");
    const foreign = createHmac("sha256", "another key").update(text).digest("base64url");
    const wrong = [
      "",
      "x",
      token.slice(0, -1),
      `${turned}.${signature}`,
      `${text}.${foreign}`,
      `${token}.`,
      "a".repeat(5000),
    ];
    for (const each of wrong) {
      const refused = await all.post("/answer", each);
      expect([each, refused.status, refused.json().error.code]).toEqual([each, 401, "unauthorized"]);
    }
    expect(all.hub.approvals.pending()).toHaveLength(1);
    expect(await done).toBe("denied");
    // Signed and intact, but its time is up with that of the call.
    await waitFor(async () => expect((await all.post("/answer", token)).status).toBe(401));
  });

  it("[sound-04a] is not locked out by strangers at the same address, who have a limit of their own", async () => {
    const all = await scene({ http: { limits: { requestsPerMinute: 5 } } });
    const done = all.call();
    const { links } = await firstBody(all);
    const tried = await Promise.all(Array.from({ length: 12 }, (_, at) => all.post("/answer", `forged.${at}`)));
    expect(tried.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(6);
    expect((await all.post("", tokenOf(links.allowOnce))).status).toBe(200);
    expect((await all.post("/answer", tokenOf(links.allowOnce))).status).toBe(200);
    expect(await done).toContain("sent");
    // A link has a limit, too, and a body that is no link is not read to its end.
    const again = await Promise.all(Array.from({ length: 8 }, () => all.post("", tokenOf(links.allowOnce))));
    expect(again.map(({ status }) => status)).toContain(429);
    const other = await scene({ http: { limits: { requestsPerMinute: 5 } } });
    const odd = [
      await other.post("/answer", "a".repeat(20_000)),
      await other.ask("/api/v1/approval-links/answer"),
      await other.ask("/api/v1/approval-links/none"),
      await other.post("/answer", "x"),
      await other.post("", "x"),
      await other.ask("/api/v1/approval-links/answer"),
    ];
    expect(odd.map(({ status }) => status)).toEqual([413, 405, 404, 401, 401, 429]);
  });

  it("works no more when its notice is taken out of the config", async () => {
    const all = await scene();
    void all.call();
    const { links } = await firstBody(all);
    const { notify } = all.hub.config.config.approvals;
    delete (notify as Record<string, unknown>)["phone"];
    expect((await all.post("/answer", tokenOf(links.deny))).status).toBe(401);
    expect(all.hub.approvals.pending()).toHaveLength(1);
  });
});

describe("[joy-04e] delivery", () => {
  it("is repeated after a failure, and delays no call", async () => {
    let count = 0;
    const all = await scene({ answer: () => ({ status: ++count < 3 ? 503 : 204 }) });
    const done = all.call();
    await waitFor(() => expect(all.receiver.asked).toHaveLength(3));
    const deliveries = new Set(all.bodies().map(({ delivery }) => delivery));
    expect(deliveries.size).toBe(1);
    expect(all.warned).toEqual([]);
    const [body] = all.bodies();
    all.hub.approvals.answer(body?.approval.id ?? "", "once");
    expect(await done).toContain("sent");
  });

  it("is given up after a few times, with a warning that has no secret", async () => {
    const all = await scene({
      notify: () => ({ chat: { type: "slack", url: "secret://env/HOOK_URL" } }),
      answer: () => ({ status: 500 }),
    });
    const done = all.call();
    await waitFor(() => expect(all.warned).toHaveLength(1));
    expect(all.receiver.asked).toHaveLength(4);
    expect(all.warned[0]).toMatch(/^The notice "chat" was not delivered to 127\.0\.0\.1:\d+: HTTP 500\.$/);
    const [request] = all.hub.approvals.pending();
    all.hub.approvals.answer(request?.id ?? "", "once");
    expect(await done).toContain("sent");
  });

  it("ends with the answer, and never repeats what was refused for good", async () => {
    const refused = await scene({ answer: () => ({ status: 404 }) });
    void refused.call();
    await waitFor(() => expect(refused.warned).toHaveLength(1));
    expect(refused.receiver.asked).toHaveLength(1);

    const slow = await scene({ answer: () => ({ status: 503 }), pausesMs: [60_000] });
    void slow.call();
    await waitFor(() => expect(slow.receiver.asked).toHaveLength(1));
    slow.hub.approvals.answer(slow.hub.approvals.pending()[0]?.id ?? "", "no");
    expect(slow.warned).toEqual([]);
  });

  it("says why where nothing listens, where the address is plain http elsewhere, and where a reference is missing", async () => {
    const gone = await new HttpDouble(() => ({ status: 200 })).start();
    const dead = `${gone.url}/path-key-0123456789`;
    await gone.stop();
    const hook = { type: "webhook", secret: "secret://env/HOOK_SECRET" };
    const all = await scene({
      notify: () => ({
        dead: { ...hook, url: dead },
        plain: { ...hook, url: "http://hooks.example.com/x" },
        missing: { ...hook, url: "secret://env/NO_SUCH_HOOK" },
      }),
    });
    void all.call();
    await waitFor(() => expect(all.warned).toHaveLength(3));
    const text = all.warned.join("\n");
    expect(text).toMatch(/"dead" was not delivered to 127\.0\.0\.1:\d+: ECONNREFUSED/);
    expect(text).toMatch(/"plain" .*plain http/);
    expect(text).toMatch(/"missing" .*NO_SUCH_HOOK/);
    expect(text).not.toContain("path-key");
  });
});

describe("[joy-04f] the forms of chats", () => {
  const forms: readonly [string, (url: string) => JsonObject][] = [
    ["slack", () => ({ chat: { type: "slack", url: "secret://env/HOOK_URL", arguments: true, answers: true } })],
    ["discord", () => ({ chat: { type: "discord", url: "secret://env/HOOK_URL", arguments: true, answers: true } })],
    [
      "ntfy",
      (url) => ({
        chat: { type: "ntfy", url: `${url}/alerts`, token: "secret://env/HOOK_SECRET", arguments: true, answers: true },
      }),
    ],
  ];

  it.each(forms)("%s has the text, both answers, and nothing that a server could make it do", async (form, notify) => {
    const all = await scene({ notify });
    void all.call({ text: "<!channel> @everyone [x](http://e.example) `*_" });
    await waitFor(() => expect(all.receiver.asked).toHaveLength(1));
    const [asked] = all.receiver.asked;
    const text = asked?.body ?? "";
    expect(text).toContain("Approval needed: send on local");
    const links = [...text.matchAll(/\/crib\/answer#[\w.-]+/g)].map(([link]) => tokenOf(link));
    expect(links).toHaveLength(2);
    expect((await all.post("", links[0] ?? "")).json<object>()).toMatchObject({ answer: "no" });
    expect((await all.post("", links[1] ?? "")).json<object>()).toMatchObject({ answer: "once" });
    // ntfy shows plain text.
    if (form !== "ntfy") expect(text).not.toMatch(/<!channel>|[^\u200b\\]`/);
    if (form === "discord") expect(text).not.toContain("[x](");
  });

  it.each(forms)("[sound-07a] %s makes no link of an address that a caller or server says", async (_form, notify) => {
    const all = await scene({ notify });
    const said =
      "http://evil.example/a www.evil.example bob@evil.example discord.gg/abc mailto:bob tel:+491 evil。example";
    void all.call({ text: said, "evil.example": "javascript:alert" });
    await waitFor(() => expect(all.receiver.asked).toHaveLength(1));
    const text = (all.receiver.asked[0]?.body ?? "").replaceAll(/http:\/\/127[^">)]*/g, "");
    expect(text).toContain("evil");
    expect(text).not.toMatch(/evil[.。]|http:|@evil|discord\.|mailto:b|tel:\+|javascript:a/);
  });

  it("go to where each service takes them", async () => {
    const all = await scene({
      notify: (url) => ({ a: { type: "ntfy", url: `${url}/sub/alerts`, token: "secret://env/HOOK_SECRET" } }),
    });
    void all.call();
    await waitFor(() => expect(all.receiver.asked).toHaveLength(1));
    const [asked] = all.receiver.asked;
    expect(asked?.path).toBe("/sub/");
    expect(asked?.headers["authorization"]).toBe(`Bearer ${SECRET}`);
    expect(JSON.parse(asked?.body ?? "")).toMatchObject({ topic: "alerts", priority: 4 });
    const discord = await scene({ notify: () => ({ a: { type: "discord", url: "secret://env/HOOK_URL" } }) });
    void discord.call();
    await waitFor(() => expect(discord.receiver.asked).toHaveLength(1));
    expect(discord.bodies<JsonObject>()[0]).toMatchObject({ flags: 4, allowed_mentions: { parse: [] } });
  });
});

describe("[joy-04e] the config of notices", () => {
  const parsed = (notice: JsonObject) => ConfigSchema.safeParse({ approvals: { notify: { a: notice } } });

  it.each([
    [{ type: "webhook", url: "https://a.example" }, "secret"],
    [{ type: "webhook", url: "https://a.example", secret: "plain-text-secret" }, "secret"],
    [{ type: "slack", url: "https://hooks.slack.com/services/T/B/x" }, "url"],
    [{ type: "discord", url: "https://discord.com/api/webhooks/1/x" }, "url"],
    [{ type: "ntfy", url: "https://ntfy.sh/a", secret: "secret://env/X" }, "secret"],
    [{ type: "slack", url: "secret://env/X", token: "secret://env/X" }, "token"],
    [{ type: "ntfy", url: "ftp://ntfy.sh/a" }, "url"],
    [{ type: "ntfy", url: "https://ntfy.sh/a", answers: true }, "answers"],
  ])("refuses %j", (notice, at) => {
    const { error } = parsed(notice);
    expect(error?.issues.map(({ path }) => path.join("."))).toContain(`approvals.notify.a.${at}`);
  });

  it("takes references", () => {
    expect(parsed({ type: "slack", url: "secret://env/X" }).success).toBe(true);
    expect(parsed({ type: "ntfy", url: "https://ntfy.sh/a" }).success).toBe(true);
    expect(parsed({ type: "webhook", url: "${HOOK}", secret: "${HOOK_SECRET}" }).success).toBe(true);
  });
});
