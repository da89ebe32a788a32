/** A hub as a process, for another user to be: `run-hub.ts <library> <home> <config> [<tool> <arguments>]…`. Prints and waits. */
const [library = "", home = "", config = "{}", ...calls] = process.argv.slice(2);
// LIBRARY of test/support/main-program.ts, whose hash of the sources a user who is not root need not be able to read.
const { createHub } = (await import(library)) as typeof import("../../../src/index.ts");
const hub = await createHub(JSON.parse(config), { home, store: false });
const answers: unknown[] = [];
for (let at = 0; at < calls.length; at += 2) {
  const request = { name: calls[at] ?? "", arguments: JSON.parse(calls[at + 1] ?? "{}") };
  const outcome = await hub.call(request);
  answers.push(outcome.ok ? outcome.result : outcome.error);
}
const servers = hub.servers.list().map(({ id, state, lastError }) => ({ id, state, lastError }));
process.stdout.write(`${JSON.stringify({ servers, answers })}\n`);
process.stdin.resume().on("end", () => void hub.close().then(() => process.exit()));
