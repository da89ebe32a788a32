/** For a Node that cannot run Toolcrib: another one does it, where the bootstrap of a checkout has installed one. */
const { spawn } = require("node:child_process");
const { existsSync, readdirSync } = require("node:fs");
const { constants } = require("node:os");
const { dirname, join } = require("node:path");

/** @param {string} complaint What to say if there is none. */
exports.runElsewhere = function runElsewhere(complaint) {
  const newer = process.env.TOOLCRIB_REEXECUTED ? undefined : bundledNode();
  if (newer !== undefined) {
    reexecute(newer);
    return;
  }
  process.stderr.write(`${complaint}\n`);
  process.exitCode = 1;
};

function bundledNode() {
  const modules = join(dirname(__dirname), ".dev", "node", "node_modules");
  if (!existsSync(modules)) return undefined;
  return readdirSync(modules)
    .filter((name) => name.startsWith("node-"))
    .flatMap((name) => [join(modules, name, "bin", "node"), join(modules, name, "bin", "node.exe")])
    .find((path) => existsSync(path));
}

function reexecute(node) {
  const child = spawn(node, [join(__dirname, "toolcrib.js"), ...process.argv.slice(2)], {
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
