import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { workspace } from "../cli/run-cli.ts";
import { filesUnder } from "./canaries.ts";
import { leakySetup } from "./leaky-config.ts";

vi.setConfig({ testTimeout: 180_000 });

function folder(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-canary-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

it("the search finds what it looks for", async () => {
  const { canaries } = await leakySetup(folder());
  const [place = "", value = ""] = [...canaries.values][0] ?? [];
  for (const text of [
    value,
    encodeURIComponent(value),
    Buffer.from(`user:${value}`).toString("base64"),
    Buffer.from(value).toString("hex"),
    JSON.stringify({ value }),
  ]) {
    expect(canaries.foundIn(`x ${text} y`).join(), text).toContain(place);
  }
  expect(canaries.foundIn("nothing")).toEqual([]);
});

describe("[guard-10b] [trust-11a] no secret comes out", () => {
  it("of any command, with servers that tell all they know, nor of any file that Toolcrib writes", async () => {
    const place = workspace();
    const { canaries, env, config } = await leakySetup(place.dir);
    const { mcpServers, ...rest } = config;
    place.configure(mcpServers, rest);
    const both = (...commands: string[]): string[][] =>
      commands.flatMap((command) => [command.split(" "), [...command.split(" "), "--json"]]);
    const uses = [
      ...both(...["dump", "fails", "refuses", "tells", "dies", "nosuch"].map((tool) => `call serve__${tool}`)),
      ...both("read leak://all", "prompt serve__ask", "call unauthorized__x", "call crash__x"),
      ["call", "serve__dump", `password=${canaries.make("an argument of a call", "plain")}`],
    ];
    const looks = [
      ...both("list", "list --all", "status", "doctor", "secrets check", "pins list", "policy explain serve__dump"),
      ["add", "new", "--dry-run", "--env", `MY_TOKEN=${canaries.make("an argument of add", "plain")}`, "--", "x"],
    ];
    for (const commands of [uses, looks, both("audit", "audit verify")]) {
      for (let first = 0; first < commands.length; first += 4) {
        const some = commands.slice(first, first + 4);
        const finished = await Promise.all(
          some.map((args) => (args.includes("--json") ? place.runHere(args, { env }) : place.run(args, { env }))),
        );
        for (const [index, { code, stdout, stderr }] of finished.entries()) {
          const said = `${stdout}\n${stderr}`;
          expect(said.trim(), some[index]?.join(" ")).not.toBe("");
          expect({ args: some[index], code, found: canaries.foundIn(said) }).toEqual({
            args: some[index],
            code,
            found: [],
          });
        }
      }
    }
    expect(canaries.foundIn(filesUnder(place.home))).toEqual([]);
    expect(canaries.foundIn(place.read("toolcrib.lock"))).toEqual([]);
    expect(place.read("toolcrib.lock")).toContain("dump with [redacted]");
  });

  it("of a command that ends with a fault nobody caught", async () => {
    const place = workspace();
    const { canaries, env, config } = await leakySetup(place.dir);
    const token = canaries.make("a token in a fault", "plain");
    const plugin = join(place.dir, "plugin.mjs");
    writeFileSync(
      plugin,
      `export default () => { setTimeout(() => { throw new Error("fault with " + process.env.FROM_ENV + " and password=${token}\\n    at secret place"); }, 1500); };`,
    );
    place.configure({ serve: config.mcpServers["serve"] }, { secrets: config["secrets"], plugins: [plugin] });
    for (const more of [[], ["--json"]]) {
      const { code, stdout, stderr } = await place.run(["list", "--timeout", "20000", ...more], { env, input: "" });
      if (code === 0) continue;
      expect(code).toBe(1);
      expect(canaries.foundIn(stdout + stderr)).toEqual([]);
      expect(stdout + stderr).not.toContain("at secret place");
    }
    place.configure(
      { silent: { ...(config.mcpServers["silent"] as object), timeout: 20_000 } },
      { secrets: config["secrets"], plugins: [plugin] },
    );
    const crashed = await place.run(["list"], { env });
    expect(crashed).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("error: Unexpected error: fault with [redacted] and password=[redacted]\n"),
    });
    expect(canaries.foundIn(crashed.stdout + crashed.stderr)).toEqual([]);
  });

  it("of the library: events, outcomes, infos, tools and what servers log at debug level", async () => {
    const dir = folder();
    const { canaries, env, config } = await leakySetup(dir);
    const home = join(dir, "home");
    const file = join(dir, "toolcrib.json");
    writeFileSync(file, JSON.stringify(config));
    const seen: unknown[] = [];
    const hub = await createHub(file, { home, env: { HOME: dir, ...env }, connect: "none", logLevel: "debug" });
    onTestFinished(() => hub.close());
    for (const event of ["server", "catalog", "log", "warning", "call", "resource-updated"] as const)
      hub.on(event, (each) => seen.push([event, each]));
    await Promise.all(hub.servers.list().map(({ id }) => hub.servers.connect(id)));
    expect(
      hub.servers
        .list()
        .filter(({ state }) => state === "ready")
        .map(({ id }) => id),
    ).toEqual(["serve"]);

    const onProgress = (progress: unknown): void => void seen.push(["progress", progress]);
    for (const tool of ["dump", "fails", "refuses", "tells"])
      seen.push(await hub.call({ name: `serve__${tool}`, onProgress }));
    seen.push(await hub.read({ uri: "leak://all" }));
    seen.push(await hub.prompt({ name: "serve__ask" }));
    seen.push(await hub.call({ name: "crash__x" }));
    for (const tool of hub.tools({ for: "openai" }))
      if (/dump|fails/.test(tool.name)) seen.push(await tool.execute("1", {}).catch((error: unknown) => String(error)));
    const { tools, prompts, resources, templates } = hub.view(hub.session);
    expect([tools, prompts, resources, templates].map((list) => list.map(({ name }) => name))).toEqual([
      ["serve__dump", "serve__fails", "serve__dies", "serve__refuses", "serve__tells"],
      ["serve__ask"],
      ["leak://all"],
      ["leaks://{x}"],
    ]);
    seen.push({ tools, prompts, resources, templates }, hub.internals.instructions(hub.session), hub.pins.list());
    seen.push(hub.tools().map(({ name, description, parameters }) => ({ name, description, parameters })));
    seen.push(await hub.call({ name: "serve__dies" }), hub.servers.list(), hub.internals.quarantined());
    await hub.close();

    const told = JSON.stringify(seen);
    for (const word of ["told", "refused: ", "cannot log in", "not JSON", '"progress"', '"log"'])
      expect(told, word).toContain(word);
    expect(canaries.foundIn(told)).toEqual([]);
    expect(canaries.foundIn(filesUnder(home))).toEqual([]);
  });
});

it("[guard-10b] leaves results as they are where maskResults is off, and masks everything else all the same", async () => {
  const dir = folder();
  const { canaries, env, config } = await leakySetup(dir);
  const file = join(dir, "toolcrib.json");
  writeFileSync(
    file,
    JSON.stringify({
      ...config,
      mcpServers: { serve: config.mcpServers["serve"] },
      secrets: { exec: { keeper: ["keeper"] }, maskResults: false },
    }),
  );
  const hub = await createHub(file, { home: join(dir, "home"), env: { HOME: dir, ...env } });
  onTestFinished(() => hub.close());
  expect(canaries.foundIn(JSON.stringify(await hub.call({ name: "serve__dump" })))).not.toEqual([]);
  expect(canaries.foundIn(JSON.stringify(await hub.call({ name: "serve__refuses" })))).toEqual([]);
});
