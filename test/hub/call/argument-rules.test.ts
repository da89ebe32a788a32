import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { AskRequest } from "../../../src/model/decision.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { everything } from "../../support/servers.ts";

const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-rules-")));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let hub: Hub | undefined;
let ran: unknown[] = [];
afterEach(async () => {
  await hub?.close();
  hub = undefined;
  ran = [];
});

async function start(config: ConfigInput | string, options: HubOptions = {}): Promise<Hub> {
  const registry = new ToolRegistry();
  for (const name of ["push", "send", "write"]) {
    registry.register({
      name,
      description: `Does ${name}.`,
      parameters: {
        type: "object",
        properties: { branch: { type: "string" }, to: {}, path: {}, text: {}, force: { type: "boolean" } },
      },
      execute: async (_id, args) => {
        ran.push(args);
        return { content: [{ type: "text", text: "done" }] };
      },
    });
  }
  hub = await createHub(config, { registry, ...options });
  return hub;
}

async function codeOf(hub: Hub, name: string, args: Record<string, unknown>, session = hub.session): Promise<string> {
  const outcome = await hub.call({ session, name, arguments: args });
  return outcome.ok ? "ok" : outcome.error.code;
}

describe("[shape-02a] a rule on arguments", () => {
  it("hides nothing, and decides at the call", async () => {
    const hub = await start({ tools: { deny: ["push(branch=main)"], allow: ["push", "write(path=/nowhere/**)"] } });
    expect(hub.view(hub.session).tools.map(({ name }) => name)).toEqual(["push", "write"]);
    expect(await codeOf(hub, "push", { branch: "dev" })).toBe("ok");
    expect(await codeOf(hub, "push", { branch: "main" })).toBe("denied");
    expect(await codeOf(hub, "push", {})).toBe("denied");
    expect(await codeOf(hub, "write", { path: "/elsewhere" })).toBe("denied");
    expect(await codeOf(hub, "write", { path: "/nowhere/a" })).toBe("ok");
    expect(ran).toEqual([{ branch: "dev" }, { path: "/nowhere/a" }]);
  });

  it("names the rule and the argument in the refusal, and never the value", async () => {
    const hub = await start({ tools: { deny: ["send(to!=*@acme.com, text=*)"] } });
    const secret = "canary-7c1d@evil.example";
    const owner = await hub.call({ name: "send", arguments: { to: secret, text: "canary-text" } });
    expect(owner).toMatchObject({
      ok: false,
      error: { code: "denied", details: { rule: { arguments: ["to", "text"] } } },
    });
    const guest = hub.openSession({ owner: false, user: "bob" });
    const others = await hub.call({ session: guest, name: "send", arguments: { to: secret, text: "canary-text" } });
    expect(others).toMatchObject({ ok: false, error: { code: "denied" } });
    for (const outcome of [owner, others]) {
      const text = JSON.stringify(outcome.ok ? {} : [outcome.error.message, outcome.error.hint, outcome.error.details]);
      expect(text).toContain("send(to!=*@acme.com, text=*)");
      expect(text).toContain("looks at to, text");
      expect(text).not.toContain("canary");
    }
    expect(JSON.stringify(others)).not.toContain("the hub's config");
  });

  it("[shape-02b] decides on what hooks leave, which is what is asked about and what runs", async () => {
    const asked: AskRequest[] = [];
    const hub = await start(
      { tools: { deny: ["push(force=true)"], ask: ["push(branch=main)"] } },
      { onAsk: (request) => (asked.push(request), "once") },
    );
    const remove = hub.use({ before: () => ({ omitArguments: ["force"] }) });
    // Absent it could still be true by default, so the rule applies.
    expect(await codeOf(hub, "push", { branch: "dev", force: false })).toBe("denied");
    remove();
    hub.use({ before: () => ({ omitArguments: ["text"] }) });
    expect(await codeOf(hub, "push", { branch: "main", force: false, text: "secret" })).toBe("ok");
    expect(asked).toMatchObject([{ arguments: { branch: "main", force: false } }]);
    expect(asked[0]?.arguments).not.toHaveProperty("text");
    expect(ran).toEqual([{ branch: "main", force: false }]);
  });

  it("[shape-02b] a hook sees nothing of a call that is denied by its name", async () => {
    const hub = await start({ tools: { deny: ["push"] } });
    let seen = 0;
    hub.use({ before: () => void (seen += 1) });
    expect(await codeOf(hub, "push", { branch: "main" })).toBe("denied");
    expect(seen).toBe(0);
  });

  it("[shape-02c] runs what was decided, whatever the caller does to its object meanwhile", async () => {
    const hub = await start({ tools: { deny: ["write(path=/etc/**)"] } });
    const args = { path: join(dir, "a") };
    const running = hub.call({ name: "write", arguments: args });
    args.path = "/etc/passwd";
    expect(await running).toMatchObject({ ok: true });
    expect(ran).toEqual([{ path: join(dir, "a") }]);
  });

  it("[shape-01e] follows real links, also those that point at nothing yet", async () => {
    const inside = join(dir, "inside");
    const outside = join(dir, "outside");
    for (const folder of [inside, outside]) mkdirSync(folder);
    writeFileSync(join(inside, "file"), "");
    symlinkSync(outside, join(inside, "link"));
    symlinkSync(join(outside, "new"), join(inside, "dangling"));
    symlinkSync(join(inside, "loop"), join(inside, "loop"));
    const hub = await start({ tools: { allow: [`write(path=${inside}/**)`] } });
    for (const path of ["file", "new.txt", "deep/er/new.txt", "link/../file"]) {
      const expected = path.startsWith("link") ? "denied" : "ok";
      expect([path, await codeOf(hub, "write", { path: join(inside, "x", "..") + `/${path}` })]).toEqual([
        path,
        expected,
      ]);
    }
    for (const path of ["link", "link/x", "link/../outside/x", "dangling", "loop", "../outside/x", "%6cink/x"]) {
      expect([path, await codeOf(hub, "write", { path: `${inside}/${path}` })]).toEqual([path, "denied"]);
    }
  });

  it("resolves relative paths against the folder of the server", async () => {
    const folder = join(dir, "server");
    mkdirSync(folder);
    const hub = await start({
      mcpServers: { srv: { ...everything(), cwd: folder } },
      tools: { deny: [`srv__echo(message=${folder}/secret/**)`] },
    });
    expect(await codeOf(hub, "srv__echo", { message: "secret/a" })).toBe("denied");
    expect(await codeOf(hub, "srv__echo", { message: "public/../secret/a" })).toBe("denied");
    expect(await codeOf(hub, "srv__echo", { message: "public/a" })).toBe("ok");
  });

  it("is read by the rules of servers, roles and sessions, too", async () => {
    const hub = await start({
      mcpServers: { srv: { ...everything(), tools: { deny: ["echo(message=a)"] } } },
      roles: { bot: { tools: { deny: ["srv__echo(message=b)"] } } },
    });
    const session = hub.openSession({ role: "bot", rules: { deny: ["srv__echo(message=c)"] } });
    const codes = ["a", "b", "c", "d"].map((message) => codeOf(hub, "srv__echo", { message }, session));
    expect(await Promise.all(codes)).toEqual(["denied", "denied", "denied", "ok"]);
    expect(() => hub.openSession({ rules: { deny: ["x(y)"] } })).toThrow(/cannot be read/);
  });

  it("looks at what the server receives: values that an override fixes count", async () => {
    const hub = await start({
      mcpServers: { srv: { ...everything(), overrides: { echo: { parameters: { message: { fixed: "main" } } } } } },
      tools: { deny: ["srv__echo(message=main)"] },
    });
    expect(await codeOf(hub, "srv__echo", {})).toBe("denied");
    expect(await hub.explain({ name: "srv__echo" })).toMatchObject({ decision: { verdict: "deny" } });
  });

  it("[shape-01d] a config with a rule that cannot be read does not load", async () => {
    await expect(start({ tools: { deny: ["push(branch)"] } })).rejects.toThrow(/branch is not followed by/);
    const rules = [{ allow: "push", when: { hours: "08-17", tained: true } }];
    // A key that no type allows.
    await expect(start({ tools: { rules } })).rejects.toThrow(/tained/);
    await expect(start({ guard: { classes: { sendsOut: ["send(to=x)"] } } })).rejects.toThrow(/without conditions/);
  });
});

describe("[shape-04b] conditions of a rule", () => {
  it("count the calls of one caller, over its sessions and at once, and forget them with time", async () => {
    const clock = new FakeClock();
    const rules = [{ deny: "send", when: { calls: { tool: "send", per: "1h", over: 2 } } }];
    const hub = await start({ tools: { rules } }, { clock });
    const ann = (): ReturnType<Hub["openSession"]> => hub.openSession({ owner: false, user: "ann" });
    const codes = await Promise.all([1, 2, 3, 4].map(() => codeOf(hub, "send", {}, ann())));
    expect(codes.toSorted()).toEqual(["denied", "denied", "ok", "ok"]);
    expect(await codeOf(hub, "send", {}, hub.openSession({ owner: false, user: "bob" }))).toBe("ok");
    await clock.advance(3_600_001);
    expect(await codeOf(hub, "send", {}, ann())).toBe("ok");
  });

  it("look at what the session has read and at its client", async () => {
    const rules = [
      { deny: "send", when: { tainted: true } },
      { deny: "push", when: { client: "cursor" } },
    ];
    const hub = await start({ tools: { rules } });
    const session = hub.openSession({ clientInfo: { name: "Cursor", version: "1" } });
    expect(await codeOf(hub, "send", {}, session)).toBe("ok");
    expect(await codeOf(hub, "push", {}, session)).toBe("denied");
    void session.taintScope.add({ server: "web", name: "web__fetch", read: [], callId: "1", at: Date.now() });
    expect(await codeOf(hub, "send", {}, session)).toBe("denied");
  });
});

describe("[shape-02d] an answer that lasts", () => {
  function file(ask: readonly string[]): string {
    const path = join(mkdtempSync(join(dir, "config-")), "toolcrib.json");
    writeFileSync(path, JSON.stringify({ tools: { ask } }));
    return path;
  }

  const asks = (path: string): unknown => JSON.parse(readFileSync(path, "utf8")).tools.ask;

  it("is for exactly this call, for these values, or for the tool", async () => {
    for (const [answer, exception, passing, asking] of [
      [
        "always-call",
        /^!=tool:send\(\*=sha256:[0-9a-f]{64}\)$/,
        [{ to: "a@x.example", text: "1" }],
        [{ to: "a@x.example", text: "2" }],
      ],
      [
        "always-values",
        /^!=tool:send\(to="a@x.example"\)$/,
        [{ to: "a@x.example", text: "2" }],
        [{ to: "b@x.example" }, { to: "A@x.example" }],
      ],
      ["always", /^!=tool:send$/, [{ to: "b@x.example" }, { to: ["c"] }], []],
    ] as const) {
      const path = file(["send(to!=*@acme.com)"]);
      let asked = 0;
      const hub = await start(path, { onAsk: () => ((asked += 1), asked === 1 ? answer : "no") });
      expect(await codeOf(hub, "send", { to: "a@x.example", text: "1" })).toBe("ok");
      expect(asks(path)).toEqual(["send(to!=*@acme.com)", expect.stringMatching(exception)]);
      for (const isReloaded of [false, true]) {
        if (isReloaded) await hub.reload();
        for (const args of passing)
          expect([answer, args, await codeOf(hub, "send", args)]).toEqual([answer, args, "ok"]);
        for (const args of asking)
          expect([answer, args, await codeOf(hub, "send", args)]).toEqual([answer, args, "denied"]);
      }
      await hub.close();
    }
  });

  it("offers no values that are secret, long or nested, and then lasts for the session at most", async () => {
    const seen: AskRequest[] = [];
    const path = file(["send(to=*)"]);
    const hub = await start(path, { onAsk: (request) => (seen.push(request), "always-values") });
    expect(await codeOf(hub, "send", { to: { nested: true } })).toBe("ok");
    expect(Object.keys(seen[0]?.lasting ?? {})).toEqual(["always", "always-call"]);
    expect(asks(path)).toEqual(["send(to=*)"]);
  });

  it("[shape-02e] a yes for the session covers the values that the rule looked at, and no others", async () => {
    let asked = 0;
    const hub = await start({ tools: { ask: ["send(to!=*@acme.com)"] } }, { onAsk: () => ((asked += 1), "session") });
    for (const to of ["a@x.example", "a@x.example", "b@x.example", "a@x.example", "ok@acme.com"])
      await codeOf(hub, "send", { to });
    expect(asked).toBe(2);
  });
});

describe("[shape-03a] the explanation of a call", () => {
  it("has the decision, the rule, and the nearest rule that would have decided otherwise", async () => {
    const hub = await start({
      tools: { deny: ["push(branch=main, force=true)", "push(branch=prod)"], ask: ["write"] },
    });
    const explain = (name: string, args: Record<string, unknown>): Promise<unknown> =>
      hub.explain({ name, arguments: args });
    expect(await explain("push", { branch: "main", force: false })).toMatchObject({
      decision: { verdict: "allow" },
      nearest: {
        verdict: "deny",
        rule: { pattern: "push(branch=main, force=true)", arguments: ["branch", "force"] },
        unmet: ["force=true"],
      },
    });
    expect(await explain("push", { branch: "main", force: true })).toMatchObject({
      decision: { verdict: "deny", rule: { pattern: "push(branch=main, force=true)" } },
    });
    expect(await explain("write", {})).toMatchObject({ decision: { verdict: "ask" } });
    expect(await explain("nothing", {})).toBeUndefined();
    expect(hub.explain("push")).toMatchObject({ decision: { verdict: "allow" }, nearest: { verdict: "deny" } });
    expect(ran).toEqual([]);
  });
});
