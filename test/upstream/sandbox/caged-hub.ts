/**
 * A hub with one hostile server in a bubblewrap cage, as a process to be killed:
 * `caged-hub.ts <home> <marker> <sandbox> [<tool> <arguments>]…`. Prints what the tools answered, then waits.
 */
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { SandboxSchema } from "../../../src/model/server-spec.ts";

const [home = "", marker = "", sandbox = "{}", ...calls] = process.argv.slice(2);
const server = new URL("../../fixtures/hostile-server.mjs", import.meta.url).pathname;
const cage = SandboxSchema.parse({ read: [server], ...JSON.parse(sandbox) });
const mcpServers = { caged: { command: process.execPath, args: [server, marker], sandbox: cage } };
const hub = await createHub({ mcpServers }, { home, store: false });
const answers: unknown[] = [];
for (let at = 0; at < calls.length; at += 2) {
  const request = { name: `caged__${calls[at]}`, arguments: JSON.parse(calls[at + 1] ?? "{}") };
  const outcome = await hub.call(request);
  answers.push(outcome.ok ? JSON.parse(String(outcome.result.content[0]?.["text"])) : outcome.error);
}
process.stdout.write(
  `${JSON.stringify({ state: hub.servers.list()[0]?.state, error: hub.servers.list()[0]?.lastError, answers })}\n`,
);
setInterval(() => {}, 60_000);
