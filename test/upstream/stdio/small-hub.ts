/**
 * A process that holds servers as a hub does, for tests of how it ends: `small-hub.ts <runDir> <way> <mode>`.
 * Prints {hub, pid, grandchild} once its server answers.
 */
import { PidRecords } from "../../../src/upstream/stdio/pid-records.ts";
import { closeOnSignals } from "../../../src/upstream/stdio/child-processes.ts";
import { StdioWire } from "../../../src/upstream/stdio/stdio-wire.ts";

const [runDir = "", way = "close", mode = "grandchild"] = process.argv.slice(2);
const server = new URL("../../fixtures/misbehaving-server.mjs", import.meta.url).pathname;
const pids = new PidRecords(runDir);
const wire = new StdioWire({
  mask: (text) => text,
  serverId: "small",
  command: process.execPath,
  args: [server, mode],
  env: {},
  pids,
  closeGraceMs: way === "slow-signal" ? 600_000 : 500,
});
const close = async (): Promise<void> => {
  await wire.close();
  pids.close();
  process.stdout.write("closed\n");
};
const answered = new Promise<string>((resolve) => {
  wire.listen({ message: ({ message }) => resolve(JSON.stringify(message)) });
});
await wire.open(new AbortController().signal);
await wire.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "pids" } });
const { result } = JSON.parse(await answered);
process.stdout.write(`${JSON.stringify({ hub: process.pid, ...JSON.parse(result.content[0].text) })}\n`);

switch (way) {
  case "close":
    await close();
    break;
  case "exit":
    process.exit(0);
  case "throw":
    throw new Error("nobody catches this");
  case "signal":
  case "slow-signal":
    closeOnSignals(close);
    process.stdout.write("listening\n");
    break;
  default:
    // Waits to be killed.
    break;
}
