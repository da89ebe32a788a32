/** The folder in which a command is run decides nothing: not which program a server of the config is, and not which home is used. */
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { describe, expect, it } from "vitest";
import { toolcribHome } from "../../src/config/find-config.ts";
import { workspace, type Workspace } from "./run-cli.ts";

// A module specifier: it is imported by the planted program.
const SERVER = join(import.meta.dirname, "..", "fixtures", "environment-server.mjs");

/** A program that leaves a note of where it was started, then goes on as a server. */
function plant(folder: string, note: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "server.mjs"),
    `import { appendFileSync } from "node:fs"; appendFileSync(${JSON.stringify(note)}, process.cwd() + "\\n"); await import(${JSON.stringify(SERVER)});`,
  );
}

/** The home's config is used, as without `--config`. */
const HOME_CONFIG = { TOOLCRIB_CONFIG: "" };

function homeConfig(place: Workspace, entry: object): void {
  writeFileSync(join(place.home, "toolcrib.json"), JSON.stringify({ mcpServers: { it: entry } }));
}

describe("[trust-01k] a server of the home config", () => {
  it("does not start what a cloned folder has under its name", async () => {
    const place = workspace();
    const [planted, own] = [join(place.dir, "planted.log"), join(place.dir, "own.log")];
    plant(place.dir, planted);
    plant(place.home, own);
    homeConfig(place, { command: process.execPath, args: ["./server.mjs"] });
    const { code } = await place.run(["list", "--json"], { env: HOME_CONFIG });
    expect(code).toBe(0);
    expect(existsSync(planted)).toBe(false);
    expect(readFileSync(own, "utf8").trim()).toBe(realpathSync(place.home));
  });

  it("goes on meaning the folder that it was added in", async () => {
    const place = workspace();
    const note = join(place.dir, "note.log");
    plant(place.dir, note);
    const added = await place.run(["add", "it", "--no-test", "--", process.execPath, "./server.mjs"], {
      env: HOME_CONFIG,
    });
    expect(added.code).toBe(0);
    const config: unknown = JSON.parse(readFileSync(join(place.home, "toolcrib.json"), "utf8"));
    expect(config).toMatchObject({ mcpServers: { it: { args: ["./server.mjs"], cwd: place.dir } } });
    expect((await place.run(["list", "--json"], { env: HOME_CONFIG })).code).toBe(0);
    expect(readFileSync(note, "utf8").trim()).toBe(place.dir);
  });
});

it("[trust-01k] a server of a config that is named starts in the folder of that config", async () => {
  const place = workspace();
  const [note, elsewhere] = [join(place.dir, "note.log"), join(place.dir, "elsewhere")];
  plant(elsewhere, note);
  const file = join(elsewhere, "toolcrib.json");
  writeFileSync(file, JSON.stringify({ mcpServers: { it: { command: process.execPath, args: ["./server.mjs"] } } }));
  expect((await place.run(["list", "--json", "--config", file])).code).toBe(0);
  expect(readFileSync(note, "utf8").trim()).toBe(elsewhere);
});

it.each(["", ".", "sub"])("[trust-01k] with HOME=%j no folder here is taken for a home", (home) => {
  const found = toolcribHome({ HOME: home, USERPROFILE: home });
  expect(isAbsolute(found)).toBe(true);
  expect(found.startsWith(join(process.cwd(), "/"))).toBe(false);
});
