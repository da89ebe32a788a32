import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { loadConfig, readProject } from "../../../src/config/load-config.ts";
import { trustRecordOf, saveTrust } from "../../../src/config/project-trust.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";

interface Place {
  readonly home: string;
  readonly dir: string;
  readonly file: string;
  readonly at: { env: NodeJS.ProcessEnv; cwd: string; home: string };
  configure(servers: readonly string[], rest?: object): void;
  trust(): Promise<void>;
  open(): Promise<{ hub: Hub; warned: string[] }>;
}

function place(): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-project-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [home, dir] = [join(root, "home"), join(root, "project")];
  for (const folder of [home, dir]) mkdirSync(folder);
  chmodSync(dir, 0o755);
  writeFileSync(join(home, "toolcrib.json"), JSON.stringify({ mcpServers: { own: { command: "x", enabled: false } } }));
  const file = join(dir, "toolcrib.json");
  const at = { env: {}, cwd: dir, home };
  return {
    ...{ home, dir, file, at },
    configure(servers, rest = {}) {
      const entries = servers.map((id) => [id, { command: "x", enabled: false }]);
      writeFileSync(file, JSON.stringify({ mcpServers: Object.fromEntries(entries), ...rest }), { mode: 0o644 });
    },
    async trust() {
      await saveTrust(home, file, trustRecordOf(await readProject(file, at), false));
    },
    async open() {
      const hub = await createHub(await loadConfig(at), { home, store: false, env: {} });
      const warned: string[] = [];
      hub.on("warning", ({ message }) => warned.push(message));
      const stop = hub.internals.watch();
      onTestFinished(async () => {
        stop();
        await hub.close();
      });
      return { hub, warned };
    },
  };
}

const ids = (hub: Hub): string[] => hub.config.servers.map(({ id }) => id);

it("[trust-01g] a running hub keeps the trusted version until the changed one is trusted", async () => {
  const { configure, trust, open, file, home } = place();
  configure(["app"]);
  await trust();
  const { hub, warned } = await open();
  expect(ids(hub)).toEqual(["own", "app"]);

  configure(["evil"]);
  await vi.waitFor(() => expect(warned.join()).toContain("the version before stays in use"), 10_000);
  expect(warned.join()).toContain(`toolcrib trust ${file}`);
  expect(ids(hub)).toEqual(["own", "app"]);

  // A change of the home's own is taken up all the same.
  writeFileSync(
    join(home, "toolcrib.json"),
    JSON.stringify({ mcpServers: { mine: { command: "x", enabled: false } } }),
  );
  await vi.waitFor(() => expect(ids(hub)).toEqual(["mine", "app"]), 10_000);

  await trust();
  await vi.waitFor(() => expect(ids(hub)).toEqual(["mine", "evil"]), 10_000);

  await saveTrust(home, file, undefined);
  await vi.waitFor(() => expect(ids(hub)).toEqual(["mine"]), 10_000);
});

it("[trust-01g] it takes up a project config that is trusted while it runs, and rules that only narrow", async () => {
  const { configure, trust, open } = place();
  configure(["app"]);
  const { hub } = await open();
  expect(ids(hub)).toEqual(["own"]);
  await trust();
  await vi.waitFor(() => expect(ids(hub)).toEqual(["own", "app"]), 10_000);
  configure(["app"], { tools: { deny: ["*"] } });
  await vi.waitFor(() => expect(hub.config.project?.rules).toMatchObject({ deny: ["*"] }), 10_000);
});

it("[trust-01g] the library leaves out what is not trusted, with a warning, and takes a path as meant", async () => {
  const { configure, at, dir, file, home } = place();
  configure(["app"]);
  const before = process.cwd();
  process.chdir(dir);
  onTestFinished(() => process.chdir(before));
  await using found = await createHub(undefined, { home, store: false, env: at.env });
  expect(ids(found)).toEqual(["own"]);
  expect(found.warnings().map(({ message }) => message)).toEqual([expect.stringContaining(`toolcrib trust ${file}`)]);
  await using named = await createHub(file, { home, store: false, env: at.env });
  expect(ids(named)).toEqual(["app"]);
});

it("[trust-01f] a server that the home keeps in its store is not displaced by one of the project", async () => {
  const { configure, trust, at, home, file } = place();
  const first = await createHub(await loadConfig(at), { home, env: {}, connect: "none" });
  await first.servers.add("app", { command: "from-store", enabled: false });
  await first.close();
  configure(["app", "more"]);
  await trust();
  await using hub = await createHub(await loadConfig(at), { home, env: {}, connect: "none" });
  const started = new Map(hub.config.servers.map(({ id, command }) => [id, command]));
  expect([...started]).toEqual([
    ["own", "x"],
    ["more", "x"],
    ["app", "from-store"],
  ]);
  expect(hub.warnings().map(({ message }) => message)).toEqual([
    expect.stringContaining(`The server "app" of ${file} is not used`),
  ]);
});
