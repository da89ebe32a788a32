/**
 * A process that holds a server in a container as a hub does, for tests of how it ends:
 * `caged-hub.ts <home> <containers as JSON> <image> <server file> <way>`. Prints its pid once the server answers.
 */
import { join } from "node:path";
import { readSandbox } from "../../../../src/upstream/sandbox/sandbox-settings.ts";
import { openSandbox } from "../../../../src/upstream/sandbox/open-sandbox.ts";
import { PidRecords } from "../../../../src/upstream/stdio/pid-records.ts";
import { StdioWire } from "../../../../src/upstream/stdio/stdio-wire.ts";

const [home = "", containers = "{}", image = "", server = "", way = "wait"] = process.argv.slice(2);
const settings = readSandbox({ image, read: [server], network: "none" }, "/", process.env);
const wire = new StdioWire({
  mask: (text) => text,
  serverId: "left over",
  command: "node",
  // It goes on when its input ends.
  args: [server, "orderly", "/tmp/ended"],
  env: {},
  sandbox: {
    baseDir: "/",
    settings,
    open: (warn) => openSandbox(settings, { home, env: process.env, containers: JSON.parse(containers), warn }),
  },
  pids: new PidRecords(join(home, "run")),
});
const answered = new Promise((resolve) => wire.listen({ message: resolve }));
await wire.open(new AbortController().signal);
await wire.send({ jsonrpc: "2.0", id: 1, method: "ping" });
await answered;
process.stdout.write(`${process.pid}\n`);
if (way === "exit") process.exit(0);
