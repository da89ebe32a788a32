/** `toolcrib setup`, and `toolcrib` alone: imports the servers of the agent clients on this machine, connects them, and undoes both. */
import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hash } from "node:crypto";
import { z } from "zod";
import type { AgentClient } from "../../clients/agent-client.ts";
import { CLIENTS } from "../../clients/clients.ts";
import { isInstalled } from "../../config/client-servers.ts";
import { parseConfigText } from "../../config/dialects.ts";
import { removeServer } from "../../config/edit-config.ts";
import { configFiles, findConfig, toolcribHome } from "../../config/find-config.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { findHub } from "../../hub/activity/hub-records.ts";
import {
  fileToWrite,
  patchBetween,
  readTextIfPresent,
  readWrittenEntries,
  revertPatch,
  TextPatchSchema,
} from "../../hub/clients/client-files.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { canonicalJson, isJsonObject } from "../../model/json.ts";
import { VERSION } from "../../model/version.ts";
import { clientEnvironment, findClient } from "../client-config.ts";
import { loadCommandConfigQuietly, recoverInterruptedInstall } from "../command-config.ts";
import type { Invocation } from "../command.ts";
import { userConfigFile } from "../config-target.ts";
import { type Column, counted } from "../table.ts";
import { readLine } from "../terminal-input.ts";
import { type ClientStatus, connectClient, disconnectClient, inspectClient } from "./connect.ts";
import { type ImportPlan, type ImportStep, planClientImports, shownId, writeSteps } from "./import.ts";

const UNDO = "toolcrib setup --undo";

/** A new machine is set up; a machine with a config gets a short status. */
export async function runBare(invocation: Invocation): Promise<number> {
  const { env, cwd } = invocation;
  const home = toolcribHome(env);
  const found = findConfig({ env, cwd, home });
  const isNew = "home" in found && found.home === null && found.project === null;
  if (!isNew || existsSync(join(home, "toolcrib.db"))) return showOverview(invocation);
  invocation.out.line(`Toolcrib ${VERSION} has no config yet.`);
  return run(invocation);
}

export async function run(invocation: Invocation): Promise<number> {
  const { flags, out } = invocation;
  await recoverInterruptedInstall(invocation);
  if (flags.has("undo")) return undo(invocation);
  const plan = await planSetup(invocation);
  if (out.json && !flags.has("yes")) {
    out.value({ ...factsOf(plan), dryRun: true });
    return 0;
  }
  if (!out.json) showPlan(invocation, plan);
  if (plan.steps.length + plan.clients.length === 0) {
    if (out.json) out.value(factsOf(plan));
    return 0;
  }
  const chosen = await choose(invocation, plan);
  if (chosen === undefined) {
    out.note("Nothing was changed. Run toolcrib setup --yes to do it, or toolcrib setup on a terminal to be asked.");
    return 0;
  }
  const done = await apply(invocation, chosen);
  if (out.json) out.value({ ...factsOf({ ...chosen, clients: done }), undo: UNDO });
  else showDone(invocation, chosen, done);
  return 0;
}

interface Plan extends ImportPlan {
  readonly target: string;
  readonly found: readonly Omit<ClientStatus, "lastCall">[];
  /** Those that are not connected yet. */
  readonly clients: readonly AgentClient[];
}

async function planSetup(invocation: Invocation): Promise<Plan> {
  const place = clientEnvironment(invocation);
  const installed = CLIENTS.filter((client) => isInstalled(client, place));
  const records = await readWrittenEntries(toolcribHome(invocation.env));
  const found = await Promise.all(installed.map((client) => inspectClient(client, place, records)));
  for (const { problem } of found) for (const line of problem?.split("\n") ?? []) invocation.out.warn(line);
  const target = userConfigFile(invocation);
  return {
    target,
    found,
    ...(await planClientImports(invocation, installed, target)),
    clients: installed.filter(
      (client, at) =>
        found[at]?.connected === false &&
        found[at].problem === undefined &&
        fileToWrite(client, "user", place) !== undefined,
    ),
  };
}

function factsOf({ target, found, steps, clients }: Plan): Record<string, unknown> {
  return {
    config: target,
    found: found.map(({ id, servers, connected }) => ({ id, servers, connected })),
    servers: steps.map(shownId),
    clients: clients.map(({ id }) => id),
  };
}

const FOUND_COLUMNS: readonly Column<Plan["found"][number]>[] = [
  { title: "CLIENT", cell: ({ name }) => name },
  { title: "TOOLCRIB", cell: ({ connected }) => (connected ? "connected" : "-") },
  { title: "ITS SERVERS", cell: ({ servers }) => servers.join(", ") || "-", shrink: true },
];

function showPlan({ out }: Invocation, { found, steps, clients, target }: Plan): void {
  if (found.length === 0) {
    out.line("There are no agent clients on this machine that Toolcrib knows.");
    out.line("Add a server with toolcrib add, and connect a client later with toolcrib connect <client>.");
    return;
  }
  out.line("Agent clients on this machine:");
  out.line("");
  out.table(FOUND_COLUMNS, found);
  out.line("");
  if (steps.length > 0) {
    out.line(`To import into ${target}: ${steps.map((step) => shownId(step)).join(", ")}`);
    for (const { from, id } of steps) if (from !== id) out.line(`  ${id} is ${from} of another client`);
  }
  if (clients.length > 0) out.line(`To connect: ${clients.map(({ name }) => name).join(", ")}`);
  if (steps.length + clients.length === 0) out.line("Their servers are imported and they are connected.");
}

/** Undefined if nothing may be changed. */
async function choose({ flags, stdin, out }: Invocation, plan: Plan): Promise<Plan | undefined> {
  if (flags.has("dryRun")) return undefined;
  if (flags.has("yes")) return plan;
  if (!stdin.isTTY || out.prompts.isTTY !== true) return undefined;
  const agrees = async (prompt: string): Promise<boolean> =>
    /^\s*(?:y|yes)?\s*$/i.test(await readLine(stdin, { prompt: `${prompt} [Y/n] `, prompts: out.prompts }));
  const { steps, clients } = plan;
  const isImported = steps.length > 0 && (await agrees(`Import ${counted(steps.length, "server")}?`));
  const isConnected = clients.length > 0 && (await agrees(`Add Toolcrib to ${counted(clients.length, "client")}?`));
  if (!isImported && !isConnected) return undefined;
  return { ...plan, ...(isImported ? {} : { steps: [], roles: {} }), clients: isConnected ? clients : [] };
}

/** Resolves with the clients that were connected. One that fails is reported, and the others go on. */
async function apply(invocation: Invocation, { target, steps, roles, clients }: Plan): Promise<AgentClient[]> {
  const home = toolcribHome(invocation.env);
  const before = await readTextIfPresent(target);
  await writeSteps({ steps, roles }, target);
  const after = await readTextIfPresent(target);
  const known = await readRecord(home);
  await saveRecord(home, withImport(known, { target, before, after, steps }));
  const connected: AgentClient[] = [];
  for (const client of clients) {
    try {
      await connectClient(invocation, client);
      connected.push(client);
      const record = await readRecord(home);
      await saveRecord(home, { ...record, clients: [...new Set([...record.clients, client.id])] });
    } catch (error) {
      const { message, hint } = asToolcribError(error);
      invocation.out.warn(`${client.name} was not connected: ${message}${hint === undefined ? "" : ` ${hint}`}`);
    }
  }
  return connected;
}

function showDone({ out }: Invocation, { target, steps }: Plan, connected: readonly AgentClient[]): void {
  out.line("");
  if (steps.length > 0) out.line(`Imported ${counted(steps.length, "server")} into ${target}.`);
  for (const { name, afterChange } of connected) out.line(`Connected ${name}. ${afterChange}`);
  if (connected.length > 0 && steps.length > 0) {
    out.line("Clients keep their own entries. Remove them there once the tools of Toolcrib are what you want.");
  }
  out.line("");
  showCommands(out, [
    ["toolcrib status", "whether the servers start"],
    ["toolcrib list", "all tools"],
    [UNDO, "undo all of this"],
  ]);
}

function showCommands(out: Invocation["out"], commands: readonly (readonly [string, string])[]): void {
  const width = Math.max(...commands.map(([command]) => command.length));
  for (const [command, what] of commands) out.line(`  ${command.padEnd(width)}  ${out.paint("dim", what)}`);
}

// What setup did, so that it can be undone.

const RecordSchema = z.object({
  version: z.literal(1),
  config: z
    .object({
      file: z.string(),
      /** Whether setup made the file. */
      created: z.boolean(),
      /** From the text before to the text after; absent if others changed the file in between. */
      patch: TextPatchSchema.optional(),
      /** Digests of the entries that were added, by id. */
      servers: z.record(z.string(), z.string()),
    })
    .optional(),
  /** Ids of the clients that were connected. */
  clients: z.array(z.string()),
});

type SetupRecord = z.output<typeof RecordSchema>;

function recordFile(home: string): string {
  return join(home, "setup.json");
}

async function readRecord(home: string): Promise<SetupRecord> {
  const file = recordFile(home);
  const text = await readTextIfPresent(file);
  if (text === null) return { version: 1, clients: [] };
  try {
    return RecordSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new ToolcribError("invalid_config", `${file}, where Toolcrib keeps what setup did, is damaged.`, {
      hint: "Move it away. Then use toolcrib disconnect and toolcrib remove.",
      cause: error,
    });
  }
}

async function saveRecord(home: string, record: SetupRecord): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeAtomic(recordFile(home), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
}

interface ImportEdit {
  readonly target: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly steps: readonly ImportStep[];
}

/** Two runs count as one if nothing else changed the file in between. */
function withImport(record: SetupRecord, { target, before, after, steps }: ImportEdit): SetupRecord {
  if (steps.length === 0 || after === null) return record;
  const earlier = record.config?.file === target ? record.config : undefined;
  const added = steps.flatMap(({ id, role }) => (role === undefined ? [[id, entryDigest(target, after, id)]] : []));
  const original = earlier === undefined ? (before ?? "") : earlier.patch && revertPatch(before ?? "", earlier.patch);
  return {
    ...record,
    config: {
      file: target,
      created: earlier?.created ?? before === null,
      patch: original === undefined ? undefined : patchBetween(original, after),
      servers: { ...earlier?.servers, ...(Object.fromEntries(added) as Record<string, string>) },
    },
  };
}

/** Empty for an entry that is not there. */
function entryDigest(file: string, text: string, id: string): string {
  const { value } = parseConfigText(file, text);
  const servers = isJsonObject(value) && isJsonObject(value["mcpServers"]) ? value["mcpServers"] : {};
  return Object.hasOwn(servers, id) ? hash("sha256", canonicalJson(servers[id])) : "";
}

async function undo(invocation: Invocation): Promise<number> {
  const { env, flags, out } = invocation;
  const home = toolcribHome(env);
  const record = await readRecord(home);
  if (record.config === undefined && record.clients.length === 0) {
    throw new ToolcribError("not_found", "There is nothing to undo: toolcrib setup has changed nothing in this home.");
  }
  const facts = {
    config: record.config?.file,
    servers: Object.keys(record.config?.servers ?? {}),
    clients: record.clients,
  };
  if (flags.has("dryRun")) {
    if (out.json) out.value({ ...facts, dryRun: true });
    else {
      if (facts.servers.length > 0) out.line(`To remove from ${facts.config ?? ""}: ${facts.servers.join(", ")}`);
      if (facts.clients.length > 0) out.line(`To disconnect: ${facts.clients.join(", ")}`);
    }
    return 0;
  }
  for (const id of record.clients) await disconnectClient(invocation, findClient(id));
  const kept = record.config === undefined ? [] : await undoImport(invocation, record.config);
  await rm(recordFile(home), { force: true });
  if (out.json) out.value({ ...facts, kept });
  return 0;
}

/** Resolves with the ids of servers that were edited since, and stay. */
async function undoImport(
  { out, flags }: Invocation,
  { file, created, patch, servers }: NonNullable<SetupRecord["config"]>,
): Promise<string[]> {
  const say = (text: string): void => void (out.json || out.line(text));
  const text = await readTextIfPresent(file);
  if (text === null) return [];
  const original = patch && revertPatch(text, patch);
  if (original !== undefined) {
    if (created) await rm(file);
    else await writeAtomic(file, original);
    say(created ? `Removed ${file}` : `Removed ${Object.keys(servers).join(", ")} from ${file}`);
    return [];
  }
  const kept: string[] = [];
  for (const [id, digest] of Object.entries(servers)) {
    const now = entryDigest(file, await readFile(file, "utf8"), id);
    if (now === "") continue;
    if (now !== digest && !flags.has("force")) {
      kept.push(id);
      out.warn(`${file}: ${id} was edited since, and was kept. Remove it with toolcrib remove ${id}.`);
      continue;
    }
    await removeServer(file, id);
    say(`Removed ${id} from ${file}`);
  }
  return kept;
}

/** The config, the hub, the clients and the next commands. Starts nothing. */
async function showOverview(invocation: Invocation): Promise<number> {
  const { out, env, cwd, flags } = invocation;
  const home = toolcribHome(env);
  const config = await loadCommandConfigQuietly(invocation);
  const hub = findHub(home, configFiles({ config: flags.text("config"), env, cwd, home }));
  const place = clientEnvironment(invocation);
  const records = await readWrittenEntries(home);
  const installed = CLIENTS.filter((client) => isInstalled(client, place));
  const clients = await Promise.all(installed.map((client) => inspectClient(client, place, records)));
  const off = config.servers.filter(({ enabled }) => !enabled).length;
  const names = (isConnected: boolean): string =>
    clients
      .filter(({ connected }) => connected === isConnected)
      .map(({ name }) => name)
      .join(", ");
  const servers = `${counted(config.servers.length, "server")}${off === 0 ? "" : `, ${off} of them disabled`}`;
  out.line(out.paint("bold", `Toolcrib ${VERSION}`));
  out.line(
    `  config   ${[config.file ?? `none in ${dirname(userConfigFile(invocation))}`, config.project?.file].filter(Boolean).join(" and ")}: ${servers}`,
  );
  out.line(
    `  hub      ${hub === undefined ? "not running; a client starts it when it needs it" : `running at ${hub.url}`}`,
  );
  out.line(`  clients  ${names(true) || "none"} connected${names(false) === "" ? "" : `; not yet: ${names(false)}`}`);
  if (config.warnings.length > 0)
    out.line(`  ${out.paint("yellow", counted(config.warnings.length, "warning"))}: toolcrib doctor shows them`);
  out.line("");
  const unconnected = clients.find(({ connected }) => !connected);
  showCommands(out, [
    ...(config.servers.length === 0
      ? [["toolcrib add files -- npx -y @modelcontextprotocol/server-filesystem .", "add a server"] as const]
      : ([
          ["toolcrib status", "the state of each server"],
          ["toolcrib list", "all tools"],
          ["toolcrib doctor", "check everything, with advice"],
        ] as const)),
    ...(unconnected === undefined
      ? []
      : [[`toolcrib connect ${unconnected.id}`, `add Toolcrib to ${unconnected.name}`] as const]),
    hub === undefined
      ? ["toolcrib serve", "run the hub with its web page"]
      : ["toolcrib login", "open the web page of the hub"],
    ["toolcrib --help", "all commands"],
  ]);
  return 0;
}
