/**
 * The hub as the client of one server, for the suites' client scenarios: connects, logs in where that is wanted, and
 * uses everything that is offered. `node conformance/hub-client.ts <url>`; what it did goes to standard error.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHub, type Hub, type Outcome } from "../src/index.ts";
import { defaultContent, plainArguments } from "./client/arguments.ts";
import { logIn } from "./client/login.ts";
import { ECHO, scenarioFrom, type ToolCall } from "./client/scenario.ts";

const SERVER = "scenario";
/** A person who is asked again and again to log in gives up. */
const MOST_LOGINS = 3;

const url = process.argv.at(-1) ?? "";
const scenario = scenarioFrom(process.env);
const home = mkdtempSync(join(tmpdir(), "toolcrib-conformance-"));
let logins = 0;

process.exitCode = await main().catch((error: unknown) => {
  console.error(String(error));
  return 1;
});
rmSync(home, { recursive: true, force: true });

async function main(): Promise<number> {
  await using hub = await createHub(
    {
      mcpServers: { [SERVER]: { url, toolPrefix: "", ...withAuth() } },
      limits: { callsPerMinute: 100_000 },
    },
    {
      home,
      wait: true,
      onElicit: async (params) => ({ action: "accept", content: defaultContent(params["requestedSchema"]) }),
      onSample: async () => ({ role: "assistant", model: "none", content: { type: "text", text: "A reply." } }),
    },
  );
  while (hub.servers.list()[0]?.status !== "connected") {
    console.error(`not connected: ${hub.servers.list()[0]?.lastError ?? "for no known reason"}`);
    if (!(await loggedIn())) return 1;
    await hub.servers.connect(SERVER);
  }
  await useAll(hub);
  return 0;
}

/** A server that wants no login gets none offered: only a configured client is named beforehand. */
function withAuth(): object {
  return Object.keys(scenario.auth).length > 1 ? { auth: scenario.auth } : {};
}

async function loggedIn(): Promise<boolean> {
  if (scenario.auth.type !== "oauth" || logins++ === MOST_LOGINS) return false;
  await logIn({ server: SERVER, url, settings: scenario.auth, home });
  return true;
}

async function useAll(hub: Hub): Promise<void> {
  const { session } = hub;
  for (const call of callsOf(hub)) await report(`tools/call ${call.name}`, () => hub.call({ ...call, session }));
  const { prompts, resources } = hub.view(session);
  for (const { name } of prompts) await report(`prompts/get ${name}`, () => hub.prompt({ session, name }));
  for (const { name } of resources) await report(`resources/read ${name}`, () => hub.read({ session, uri: name }));
}

function callsOf(hub: Hub): readonly ToolCall[] {
  if (scenario.calls.length > 0) return scenario.calls;
  const { tools } = hub.view(hub.session);
  const echoed = tools.find(({ name }) => name === ECHO.of)?.definition.inputSchema;
  return tools.map(({ name, definition }) => ({
    name,
    arguments: name === ECHO.tool ? { schema: echoed } : plainArguments(definition.inputSchema),
  }));
}

async function report(what: string, use: () => Promise<Outcome>): Promise<void> {
  let outcome = await use();
  while (!outcome.ok && outcome.error.code === "unauthorized" && (await loggedIn())) outcome = await use();
  console.error(`${what}: ${outcome.ok ? "done" : `${outcome.error.code}: ${outcome.error.message}`}`);
}
