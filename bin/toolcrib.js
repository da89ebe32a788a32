#!/usr/bin/env node
// Plain JavaScript for Node 18 and up, so that an old Node gives a clear answer instead of a syntax error.
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const NEEDED = [22, 14];
const self = fileURLToPath(import.meta.url);
const root = dirname(dirname(self));
const built = join(root, "dist", "cli", "main.js");
const source = join(root, "src", "cli", "main.ts");
const entry = existsSync(built) || !existsSync(source) ? built : source;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isNewEnough = major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
// A checkout that was not built runs from TypeScript, which needs a Node that strips types by itself.
const canRunEntry = entry === built || Boolean(process.features.typescript);

if (isNewEnough && canRunEntry) {
  await import(pathToFileURL(entry).href);
} else {
  const newer = process.env.TOOLCRIB_REEXECUTED ? undefined : bundledNode();
  if (newer !== undefined) {
    reexecute(newer);
  } else if (isNewEnough) {
    process.stderr.write(
      "toolcrib: this checkout is not built, and this Node does not run TypeScript; run: npm run build\n",
    );
    process.exitCode = 1;
  } else {
    process.stderr.write(
      `toolcrib needs Node ${NEEDED.join(".")} or newer; this is Node ${process.versions.node}. Get one at https://nodejs.org\n`,
    );
    process.exitCode = 1;
  }
}

/** The Node that the bootstrap of a checkout installed, if there is one. */
function bundledNode() {
  const modules = join(root, ".dev", "node", "node_modules");
  if (!existsSync(modules)) return undefined;
  return readdirSync(modules)
    .filter((name) => name.startsWith("node-"))
    .flatMap((name) => [join(modules, name, "bin", "node"), join(modules, name, "bin", "node.exe")])
    .find((path) => existsSync(path));
}

function reexecute(node) {
  const child = spawn(node, [self, ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...process.env, TOOLCRIB_REEXECUTED: "1" },
  });
  // Ctrl-C on a terminal reaches the child by itself; forwarding it too would look like a second, impatient one.
  const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
  process.on("SIGINT", () => onTerminal || child.kill("SIGINT"));
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`toolcrib: ${node} did not start: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    process.exit(code ?? 128 + (constants.signals[signal] ?? 0));
  });
}
