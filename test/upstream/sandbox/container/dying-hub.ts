/**
 * A process that has containers and makes an image as a hub does, for tests of what is left when it is killed:
 * `dying-hub.ts <home> <npm> <program that starts a container> <engine> <other engine>`. Prints a line when all is under way.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { containerEngine } from "../../../../src/upstream/sandbox/container-engine.ts";
import { trackContainer } from "../../../../src/upstream/sandbox/live-containers.ts";
import { makeNpmImage } from "../../../../src/upstream/sandbox/container-image.ts";
import { PidRecords } from "../../../../src/upstream/stdio/pid-records.ts";
import { eventually } from "../../../support/eventually.ts";

const [home = "", npm = "", starter = "", ...programs] = process.argv.slice(2);
const warn = (): void => {};
const engines = await Promise.all(programs.map((program) => containerEngine({ program }, process.env)));
for (const engine of engines) trackContainer({ engine, name: "c", home, warn });
const child = spawn(starter, { stdio: "ignore", detached: true });
new PidRecords(join(home, "run")).add({ pid: child.pid ?? 0, serverId: "one", command: starter, args: [] });
const [engine] = engines;
if (engine === undefined) throw new Error("no engine was named");
const launch = { name: "p", version: "1.2.3", bin: undefined, args: [], npm };
const deps = { home, env: process.env, containers: {}, warn };
const { signal } = new AbortController();
void makeNpmImage({ launch, image: "localhost/p:1", base: "b", engine, deps, serverId: "two", signal });
await eventually(() => existsSync(join(home, "npm")));
process.stdout.write("ready\n");
