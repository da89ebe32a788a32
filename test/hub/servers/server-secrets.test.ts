import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Hub } from "../../../src/hub/hub.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { Canaries, filesUnder } from "../../canary/canaries.ts";
import { ids, Place, refused } from "./place.ts";

const LEAKY = resolve(import.meta.dirname, "../../fixtures/leaky-server.mjs");
const leaky = (env: JsonObject): JsonObject => ({ command: process.execPath, args: [LEAKY, "serve"], env });

/** Everything that a hub says of itself, and what its tool says of the environment, unmasked only by `maskResults: false`. */
async function allThatIsSaid(hub: Hub, server: string): Promise<string> {
  const dumped = await hub.call({ name: `${server}__dump`, arguments: {} });
  return JSON.stringify([
    hub.servers.list(),
    await hub.servers.get(server),
    hub.warnings(),
    dumped,
    await hub.internals.store?.servers.list(),
  ]);
}

async function sealedNames(hub: Hub): Promise<string[]> {
  return (await hub.internals.store?.sealed.names()) ?? [];
}

describe("[oper-02d] a plain secret in a server that is added", () => {
  it("is refused with the place and without the value, whatever else is asked", async () => {
    const place = new Place();
    const hub = await place.hub({ connect: "none" });
    const canaries = new Canaries();
    await hub.servers.add("s", { command: "x", env: { API_TOKEN: "${API_TOKEN}" } });
    const header = { url: "https://h.example", headers: { Authorization: `Bearer ${canaries.make("header")}` } };
    const answers = [
      await refused(hub.servers.add("a", leaky({ API_TOKEN: canaries.make("add") }))),
      await refused(hub.servers.add("b", header)),
      await refused(hub.servers.update("s", { env: { API_TOKEN: canaries.make("update") } })),
      await refused(hub.servers.test("t", leaky({ API_TOKEN: canaries.make("test") }))),
      await refused(
        hub.servers.add("d", { command: "x", env: { API_TOKEN: `\${NO:-${canaries.make("default", "plain")}}` } }),
      ),
    ];
    expect(answers.map(({ code, details }) => [code, details?.["where"]])).toEqual([
      ["invalid_arguments", ["env.API_TOKEN"]],
      ["invalid_arguments", ["headers.Authorization"]],
      ["invalid_arguments", ["env.API_TOKEN"]],
      ["invalid_arguments", ["env.API_TOKEN"]],
      ["invalid_arguments", ["env.API_TOKEN"]],
    ]);
    expect(answers[0]?.hint).toMatch(/secret:\/\/.*secrets\.keep/);
    await hub.close();
    expect(ids(await place.hub({ connect: "none" }))).toEqual(["s"]);
    expect(canaries.foundIn(JSON.stringify(answers))).toEqual([]);
    expect(canaries.foundIn(filesUnder(place.home))).toEqual([]);
  });

  it("is not what is shown in its place, sent back", async () => {
    const hub = await new Place({ secrets: { keep: "encrypted" } }).hub({ connect: "none" });
    const given = { command: "x", env: { API_TOKEN: "correct-horse" }, args: ["-v"] };
    await hub.servers.add("s", given);
    const stored = await hub.internals.store?.servers.get("s");
    const masked = "[redacted]";
    const answers = [
      await refused(hub.servers.update("s", { env: { API_TOKEN: masked } })),
      await refused(hub.servers.update("s", { args: ["--x", `y ${masked}`] })),
      await refused(hub.servers.add("t", { ...given, env: { API_TOKEN: masked } })),
      await refused(hub.servers.test("s", { ...given, env: { API_TOKEN: masked } })),
    ];
    expect(answers.map(({ code, details }) => [code, details?.["where"]])).toEqual([
      ["invalid_arguments", ["env.API_TOKEN"]],
      ["invalid_arguments", ["args.1"]],
      ["invalid_arguments", ["env.API_TOKEN"]],
      ["invalid_arguments", ["env.API_TOKEN"]],
    ]);
    expect(answers[0]?.hint).toContain("Leave the key out to keep it");
    expect(await hub.internals.store?.servers.get("s")).toEqual(stored);
  });

  it("is refused beside a reference too, also where plain ones are kept", async () => {
    const hub = await new Place({ secrets: { keep: "encrypted" } }).hub({ connect: "none" });
    const entry = { command: "x", env: { PASSWORD: "mixed-in-plain${HOME}" } };
    const answer = await refused(hub.servers.add("s", entry));
    expect([answer.code, answer.details?.["where"]]).toEqual(["invalid_arguments", ["env.PASSWORD"]]);
    expect(JSON.stringify(answer)).not.toContain("mixed-in-plain");
  });

  it("is encrypted into the store, reaches the server, and stands nowhere", async () => {
    const place = new Place({ secrets: { keep: "encrypted", maskResults: false } });
    const hub = await place.hub();
    const canaries = new Canaries();
    const first = canaries.make("first");
    expect(await hub.servers.add("s", leaky({ API_TOKEN: first, MODE: "x" }))).toMatchObject({ state: "ready" });
    const config = (await hub.servers.get("s"))?.config;
    expect(config).toMatchObject({
      env: { API_TOKEN: expect.stringMatching(/^secret:\/\/store\/servers\/s\/env\.API_TOKEN\./), MODE: "x" },
    });
    const dump = async (each: Hub): Promise<string> =>
      JSON.stringify((await each.call({ name: "s__dump", arguments: {} })).result);
    expect(canaries.foundIn(await dump(hub))).toContain("first (base64)");

    // Another value has another name, so that the server connects anew, and the old one goes.
    const [before] = await sealedNames(hub);
    await hub.servers.update("s", { env: { API_TOKEN: canaries.make("second") } });
    expect(canaries.foundIn(await dump(hub))).toContain("second (base64)");
    expect(await sealedNames(hub)).toHaveLength(1);
    expect(await sealedNames(hub)).not.toContain(before);
    await hub.servers.update("s", { tags: ["x"] });
    expect(await sealedNames(hub)).toHaveLength(1);
    await hub.close();
    expect(canaries.foundIn(filesUnder(place.home))).toEqual([]);

    const next = await place.hub();
    expect(canaries.foundIn(await dump(next))).toContain("second (base64)");
    // Somebody else refers to it.
    await next.servers.add("t", { ...leaky({}), env: (await next.servers.get("s"))?.config["env"] });
    await next.servers.remove("s");
    expect(await sealedNames(next)).toHaveLength(1);
    await next.servers.remove("t");
    expect(await sealedNames(next)).toEqual([]);
  });

  it("is masked in everything that is said", async () => {
    const hub = await new Place({ secrets: { keep: "encrypted" }, audit: { arguments: true } }).hub();
    const canaries = new Canaries();
    await hub.servers.add("s", leaky({ API_TOKEN: canaries.make("add") }));
    expect(canaries.foundIn(await allThatIsSaid(hub, "s"))).toEqual([]);
    expect((await hub.servers.get("s"))?.stderr.join("\n")).toContain("starting with [redacted]");
  });

  it("is opened with the key that `secrets.key` refers to, and with no other", async () => {
    const place = new Place({ secrets: { keep: "encrypted", key: "${TOOLCRIB_KEY}" } });
    const canaries = new Canaries();
    const env = (key: string): NodeJS.ProcessEnv => ({ ...process.env, TOOLCRIB_KEY: key });
    const passphrase = canaries.make("passphrase");
    const hub = await place.hub({ env: env(passphrase) });
    expect(await hub.servers.add("s", leaky({ API_TOKEN: canaries.make("add") }))).toMatchObject({ state: "ready" });
    await hub.close();
    expect((await place.hub({ env: env(passphrase) })).servers.list()).toMatchObject([{ state: "ready" }]);
    const wrong = await place.hub({ env: env("not-that-passphrase") });
    expect(wrong.servers.list()).toMatchObject([
      { state: "failed", lastError: expect.stringContaining("another key") },
    ]);
    expect(canaries.foundIn(filesUnder(place.home) + JSON.stringify(wrong.servers.list()))).toEqual([]);
    place.write("toolcrib.json", { secrets: { key: "secret://store/KEY" } });
    const inStore = await place.hub();
    expect(inStore.servers.list()).toMatchObject([
      { state: "failed", lastError: expect.stringContaining("cannot be there") },
    ]);
  });

  it.skipIf(process.platform !== "linux")("is put into the keychain, and taken out with the server", async () => {
    const place = new Place({ secrets: { keep: "keychain" } });
    const bin = mkdtempSync(join(tmpdir(), "toolcrib-keychain-"));
    onTestFinished(() => rmSync(bin, { recursive: true, force: true }));
    const chain = join(bin, "chain.json");
    writeFileSync(chain, "{}");
    const script = `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const [action, ...rest] = process.argv.slice(2).filter((word) => !word.startsWith("--label"));
const key = rest.join(" "), all = JSON.parse(readFileSync(${JSON.stringify(chain)}, "utf8"));
if (action === "store") all[key] = readFileSync(0, "utf8");
if (action === "clear") delete all[key];
if (action === "lookup") process.stdout.write(all[key] ?? (process.exitCode = 1, ""));
writeFileSync(${JSON.stringify(chain)}, JSON.stringify(all));
`;
    writeFileSync(join(bin, "secret-tool"), script);
    chmodSync(join(bin, "secret-tool"), 0o755);
    const canaries = new Canaries();
    const hub = await place.hub({ env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}` } });
    expect(await hub.servers.add("s", leaky({ API_TOKEN: canaries.make("add") }))).toMatchObject({ state: "ready" });
    expect((await hub.servers.get("s"))?.config).toMatchObject({
      env: { API_TOKEN: expect.stringMatching(/^secret:\/\/keychain\/toolcrib\/servers\/s\/env\.API_TOKEN\./) },
    });
    expect(canaries.foundIn(readFileSync(chain, "utf8"))).not.toEqual([]);
    await hub.servers.remove("s");
    expect(JSON.parse(readFileSync(chain, "utf8"))).toEqual({});
    await hub.close();
    expect(canaries.foundIn(filesUnder(place.home))).toEqual([]);
  });

  it("is refused where there is nothing to keep it in", async () => {
    const place = new Place({ secrets: { keep: "encrypted" } });
    const hub = await place.hub({ store: false });
    expect(await refused(hub.servers.add("s", leaky({ API_TOKEN: "canary-1" })))).toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("no store"),
    });
  });
});
