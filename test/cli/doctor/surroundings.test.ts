import { describe, expect, it, onTestFinished } from "vitest";
import { cageChecks, clusterChecks, sharedStoreCheck } from "../../../src/cli/commands/doctor.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { LoadedConfig } from "../../../src/model/loaded-config.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";
import { Secrets } from "../../../src/secrets/secrets.ts";
import { missingNats, startNats } from "../../support/nats.ts";
import { workspace } from "../run-cli.ts";

const loaded = (config: ConfigInput): Promise<LoadedConfig> => loadConfig({ config, env: {}, cwd: "/" });

describe("[cage-04c] what doctor says of cages", () => {
  const cages = [
    { kind: "none", available: true },
    { kind: "bubblewrap", available: true, version: "bubblewrap 0.8.0" },
    { kind: "container", available: false, reason: "no podman", hint: "Install one." },
  ] as const;

  it("each kind with its version or the reason, which is a problem only for who needs it", async () => {
    const { servers } = await loaded({
      sandbox: "bubblewrap",
      mcpServers: {
        a: { command: "x" },
        b: { url: "https://h.test/mcp" },
        c: { command: "x", enabled: false, sandbox: "container" },
        d: { command: "x", sandbox: "none" },
      },
    });
    expect(cageChecks(cages, servers)).toMatchObject([
      { area: "cages", status: "ok", message: "bubblewrap: bubblewrap 0.8.0; used by a" },
      {
        area: "cages",
        status: "ok",
        message: "container: not available on this machine (no podman)",
        hint: "Install one.",
      },
    ]);
    const needy = await loaded({ mcpServers: { a: { command: "x", sandbox: { image: "i" } } } });
    expect(cageChecks(cages, needy.servers)[1]).toMatchObject({
      status: "fail",
      message: "container: not available on this machine (no podman); used by a",
      details: { servers: ["a"] },
    });
    // That podman answers says nothing of what the kernel lets it do.
    const podman = [{ kind: "container", available: true, version: "podman 4.3.1" }] as const;
    expect(cageChecks(podman, needy.servers)).toMatchObject([
      {
        status: "ok",
        message: expect.stringMatching(/^container: podman 4\.3\.1 responds; containers .*; used by a$/),
      },
    ]);
  });

  it("as the command shows it on this machine", async () => {
    const place = workspace();
    place.configure({});
    const { stdout } = await place.runHere(["doctor", "--json"]);
    const { checks } = JSON.parse(stdout) as { checks: { area: string; message: string; details: object }[] };
    const told = checks.filter(({ area }) => area === "cages");
    expect(told.map(({ details }) => details)).toMatchObject([{ kind: "bubblewrap" }, { kind: "container" }]);
    for (const { message } of told)
      expect(message).toMatch(/^(?:bubblewrap|container): (?:not available on this machine|\w+ \d)/);
  });
});

describe("[scale-05b] what doctor says of a cluster", () => {
  const redactor = new Redactor();
  const parts = { redactor, secrets: new Secrets({ env: { NATS_PW: "hunter22" }, redactor }) };

  it("nothing where there is none; a failure where NATS is not there or the store is not shared", async () => {
    expect(await clusterChecks(await loaded({}), parts)).toEqual([]);
    const config = await loaded({ cluster: "nats://me:${NATS_PW}@127.0.0.1:1", store: "postgres://h/db" });
    const [check] = await clusterChecks(config, parts);
    expect(check).toMatchObject({ area: "cluster", status: "fail", hint: expect.any(String) });
    expect(JSON.stringify(check)).not.toContain("hunter22");
    expect(sharedStoreCheck({ config, store: undefined })).toMatchObject([{ area: "cluster", status: "fail" }]);
    expect(sharedStoreCheck({ config: await loaded({}), store: undefined })).toEqual([]);
  });

  const missing = missingNats();
  if (missing !== undefined) console.warn(`doctor is not tried with a NATS server: ${missing}`);
  it.skipIf(missing !== undefined)("whether NATS answers, and has JetStream", async () => {
    for (const jetStream of [true, false]) {
      const nats = await startNats({ jetStream });
      onTestFinished(() => nats.stop());
      const config = await loaded({ cluster: nats.url, store: "postgres://h/db" });
      const [check] = await clusterChecks(config, parts);
      expect(check).toMatchObject({ area: "cluster", status: jetStream ? "ok" : "fail" });
      expect(check?.message).toContain("JetStream");
    }
  });

  it.skipIf(missing !== undefined)(
    "[trust-18c] that NATS asks for no credentials, and nothing where it does",
    async () => {
      const user = { user: "hub", password: "correct-horse-battery" };
      const [open, guarded] = await Promise.all([startNats(), startNats(user)]);
      onTestFinished(async () => void (await Promise.all([open.stop(), guarded.stop()])));
      const statuses = async (url: string): Promise<unknown> => {
        const checks = await clusterChecks(await loaded({ cluster: url, store: "postgres://h/db" }), parts);
        return checks.map(({ status, message }) => (status === "warn" ? message : status));
      };
      // Also where credentials are given: it would let in whoever has none.
      for (const url of [open.url, open.url.replace("//", "//hub:any@")]) {
        expect(await statuses(url)).toEqual(["ok", expect.stringMatching(/^NATS does not ask for credentials/)]);
      }
      expect(await statuses(guarded.url.replace("//", "//hub:correct-horse-battery@"))).toEqual(["ok"]);
    },
  );
});
