/** "Always" is for what was shown: a server that chooses its names cannot make a rule of them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { AskAnswer } from "../../../src/model/decision.ts";
import type { Outcome } from "../../../src/model/errors.ts";

const dir = mkdtempSync(join(tmpdir(), "toolcrib-exact-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const SCRIPTED = resolve(import.meta.dirname, "../../fixtures/scripted-server.mjs");
const inputSchema = { type: "object" };
const content = [{ type: "text", text: "ran" }];

/** Names that are patterns, classes, tags, exceptions and exact entries in the language of rules. */
const NAMES = [
  "*",
  "**",
  "destructive",
  "readOnly",
  "writes",
  "openWorld",
  "!x",
  "!*",
  "tag:money",
  "tag:*",
  "w?pe",
  "[a-z]*",
  "{wipe,erase}",
  "=tool:evil__wipe",
  "=evil__wipe",
  "evil__*",
  "evil__wipe",
  "wipe",
  "bank__wipe",
  "#fragment",
  "\\*",
];

const TOOLS = ["wipe", "erase", ...NAMES.filter((name) => name !== "wipe")];

let hubs: Hub[] = [];
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.close();
});

let number = 0;

class Scene {
  readonly file = join(dir, `${(number += 1)}.json`);
  asked: string[] = [];
  #answer: AskAnswer = "no";

  constructor(ask: readonly string[], server: Record<string, unknown> = {}) {
    const evil = {
      tools: TOOLS.map((name) => ({ name, inputSchema })),
      prompts: NAMES.map((name) => ({ name })),
      resources: NAMES.map((uri) => ({ uri, name: uri })),
      results: Object.fromEntries(TOOLS.map((name) => [name, { content }])),
      reads: Object.fromEntries(NAMES.map((uri) => [uri, { contents: [{ uri, text: "read" }] }])),
      gets: Object.fromEntries(NAMES.map((name) => [name, { messages: [] }])),
    };
    const bank = { tools: [{ name: "wipe", inputSchema }], results: { wipe: { content } } };
    const entry = (id: string, script: object, more: object): object => {
      const path = join(dir, `${number}-${id}.json`);
      writeFileSync(path, JSON.stringify(script));
      return { command: process.execPath, args: [SCRIPTED, path], ...more };
    };
    const mcpServers = {
      evil: entry("evil", evil, server),
      bank: entry("bank", bank, { tags: ["money"] }),
    };
    writeFileSync(this.file, JSON.stringify({ mcpServers, tools: { ask } }));
  }

  async open(options: HubOptions = {}): Promise<Hub> {
    const hub = await createHub(this.file, {
      wait: true,
      home: join(dir, `home-${number}`),
      store: false,
      onAsk: ({ name }) => {
        this.asked.push(name);
        return this.#answer;
      },
      ...options,
    });
    hubs.push(hub);
    return hub;
  }

  /** Whether somebody is asked for it, and says no. */
  async isAskedFor(hub: Hub, use: (hub: Hub) => Promise<Outcome>): Promise<boolean> {
    const before = this.asked.length;
    await use(hub);
    return this.asked.length > before;
  }

  async always(hub: Hub, use: (hub: Hub) => Promise<Outcome>): Promise<void> {
    this.#answer = "always";
    const outcome = await use(hub);
    this.#answer = "no";
    expect(outcome.ok).toBe(true);
  }

  get ask(): string[] {
    const { tools } = JSON.parse(readFileSync(this.file, "utf8")) as { tools: { ask: string[] } };
    return tools.ask;
  }
}

const call = (name: string) => (hub: Hub) => hub.call({ name });
const read = (uri: string) => (hub: Hub) => hub.read({ uri });
const prompt = (name: string) => (hub: Hub) => hub.prompt({ name });

function publicNames(hub: Hub): Record<"tools" | "prompts" | "resources", Map<string, string>> {
  const { tools, prompts, resources } = hub.view(hub.session);
  const named = (list: readonly { readonly name: string; readonly origin: { name: string; source: string } }[]) =>
    new Map(list.flatMap(({ name, origin }) => (origin.source === "evil" ? [[origin.name, name] as const] : [])));
  return { tools: named(tools), prompts: named(prompts), resources: named(resources) };
}

describe("[trust-07c] an answer that lasts, for something with a name that is a rule", () => {
  it.each([
    ["the public naming", {}],
    ["the server's bare names", { toolPrefix: "" }],
  ])("is for that alone, and still after a restart: %s", async (_what, server) => {
    const scene = new Scene(["*", "destructive", "readOnly", "tag:money"], server);
    const first = await scene.open();
    const names = publicNames(first);
    const uses = [
      ...[...names.resources.values()].map((uri) => read(uri)),
      ...[...names.prompts.values()].map((name) => prompt(name)),
      ...[...names.tools].flatMap(([own, name]) => (own === "wipe" || own === "erase" ? [] : [call(name)])),
    ];
    expect(uses.length).toBeGreaterThan(40);
    const guarded = [call("bank__wipe"), call(names.tools.get("wipe") ?? ""), call(names.tools.get("erase") ?? "")];
    for (const [index, use] of uses.entries()) {
      // Every other one, so that what was never answered is there to be asked for.
      if (index % 2 === 1) continue;
      await scene.always(first, use);
      for (const other of guarded) expect(await scene.isAskedFor(first, other), scene.ask.at(-1)).toBe(true);
    }
    const second = await scene.open();
    for (const other of guarded) expect(await scene.isAskedFor(second, other)).toBe(true);
    for (const [index, use] of uses.entries()) {
      expect(await scene.isAskedFor(second, use), `${index} ${scene.ask[Math.floor(index / 2) + 4]}`).toBe(
        index % 2 === 1,
      );
    }
    expect(scene.ask.slice(4).every((entry) => /^!=(?:tool|prompt|resource):/.test(entry))).toBe(true);
  });

  it("is for one kind: a resource or prompt with the name of a tool says nothing of the tool", async () => {
    const scene = new Scene(["*"]);
    const hub = await scene.open();
    await scene.always(hub, read("evil__wipe"));
    await scene.always(hub, prompt("evil__wipe"));
    for (const each of [hub, await scene.open()]) {
      expect(await scene.isAskedFor(each, read("evil__wipe"))).toBe(false);
      expect(await scene.isAskedFor(each, prompt("evil__wipe"))).toBe(false);
      expect(await scene.isAskedFor(each, call("evil__wipe"))).toBe(true);
    }
  });

  it("for an ordinary name is not asked again, and the entries of old files keep their meaning", async () => {
    const scene = new Scene(["*", "!evil__erase"]);
    const hub = await scene.open();
    await scene.always(hub, call("evil__wipe"));
    expect(scene.ask).toEqual(["*", "!evil__erase", "!=tool:evil__wipe"]);
    for (const each of [hub, await scene.open()]) {
      expect(await scene.isAskedFor(each, call("evil__wipe"))).toBe(false);
      expect(await scene.isAskedFor(each, call("evil__erase"))).toBe(false);
      expect(await scene.isAskedFor(each, call("bank__wipe"))).toBe(true);
    }
  });

  it("for the session is as exact", async () => {
    const scene = new Scene(["*"]);
    let answer: AskAnswer = "session";
    const hub = await scene.open({ onAsk: ({ name }) => (scene.asked.push(name), answer) });
    for (const uri of ["*", "destructive", "evil__wipe"]) expect((await read(uri)(hub)).ok).toBe(true);
    answer = "no";
    expect(await scene.isAskedFor(hub, read("*"))).toBe(false);
    for (const use of [call("evil__wipe"), call("bank__wipe"), read("writes"), prompt("evil__wipe")]) {
      expect(await scene.isAskedFor(hub, use)).toBe(true);
    }
  });
});
