/** `toolcrib hub`: the hub in the background that stdio clients share. */
import { existsSync, readFileSync } from "node:fs";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { findHub, type HubRecord, readHubRecords } from "../../hub/activity/hub-records.ts";
import { ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { type Invocation, unknownAction } from "../command.ts";
import { type EditorSession, editorSessions } from "../remote-hub.ts";
import { plain } from "../skill/describe-skill.ts";
import type { Column } from "../table.ts";
import { type HubPlace, hubLogFile, startHub } from "./start-hub.ts";
import { stopHub } from "./stop-hub.ts";

const SHOWN_LINES = 50;

export async function run(invocation: Invocation): Promise<number> {
  const [action = "status"] = invocation.args;
  const place = placeOf(invocation);
  switch (action) {
    case "start":
      return start(invocation, place);
    case "stop":
      return stop(invocation, place);
    case "restart":
      await stop(invocation, place);
      return start(invocation, place);
    case "status":
      return status(invocation, place);
    case "logs":
      return logs(invocation, place);
    default:
      throw unknownAction("hub", action, "Use start, stop, restart, status or logs.");
  }
}

function placeOf({ env, cwd, flags }: Invocation): HubPlace {
  const home = toolcribHome(env);
  const config = flags.text("config");
  return { home, env, cwd, config, files: configFiles({ config, env, cwd, home }) };
}

async function start({ out }: Invocation, place: HubPlace): Promise<number> {
  const hub = await startHub(place);
  if (out.json) out.value(shown(hub));
  else out.line(`The hub runs at ${hub.url} (process ${hub.pid}).`);
  return 0;
}

async function stop({ out }: Invocation, place: HubPlace): Promise<number> {
  const hub = findHub(place.home, place.files);
  if (hub?.background === false) {
    throw new ToolcribError("conflict", `toolcrib serve runs this hub in a terminal or service (process ${hub.pid}).`, {
      hint: "Stop it there.",
    });
  }
  const hasStopped = hub !== undefined && (await stopHub(hub));
  if (!out.json) out.line(hasStopped ? `The hub (process ${hub.pid}) has ended.` : "No hub runs with this config.");
  return 0;
}

const COLUMNS: readonly Column<HubRecord>[] = [
  { title: "PROCESS", cell: ({ pid }) => String(pid) },
  { title: "URL", cell: ({ url }) => url },
  { title: "VERSION", cell: ({ version = "" }) => version },
  { title: "STARTED BY", cell: startedBy },
  { title: "CONFIG", cell: ({ config = [] }) => config.join(", "), shrink: true },
];

function startedBy({ background, editor }: HubRecord): string {
  if (editor === true) return "an editor";
  return background === true ? "a client" : "serve";
}

const SESSION_COLUMNS: readonly Column<EditorSession>[] = [
  { title: "SESSION", cell: ({ id }) => id },
  { title: "EDITOR", cell: ({ client = "-" }) => plain(client) },
  { title: "PROCESS", cell: ({ hub }) => String(hub.pid), dropAt: 1 },
  { title: "SINCE", cell: ({ openedAt = "" }) => openedAt, dropAt: 2 },
  { title: "FOLDER", cell: ({ folder = "" }) => folder, shrink: true },
];

async function status({ out }: Invocation, { home }: HubPlace): Promise<number> {
  const hubs = readHubRecords(home);
  const sessions = await editorSessions(home);
  const withSessions = (hub: HubRecord): object => {
    if (hub.editor !== true) return shown(hub);
    const own = sessions.filter((session) => session.hub.pid === hub.pid);
    return { ...shown(hub), sessions: own.map(({ hub: _hub, ...session }) => session) };
  };
  if (out.json) out.value(hubs.map(withSessions));
  else if (hubs.length === 0)
    out.line("No hub runs. Clients that use toolcrib mcp start one, and so does toolcrib hub start.");
  else out.table(COLUMNS, hubs);
  if (!out.json && sessions.length > 0) {
    out.line("");
    out.table(SESSION_COLUMNS, sessions);
  }
  const other = hubs.find(({ version }) => version !== VERSION);
  if (other !== undefined) out.warn(`The hub of process ${other.pid} is version ${other.version}, this is ${VERSION}.`);
  return 0;
}

function logs({ out }: Invocation, { home, files }: HubPlace): number {
  const file = hubLogFile(home, files);
  if (!existsSync(file)) {
    throw new ToolcribError("not_found", "No hub was started in the background for this config.", {
      hint: `Its log would be ${file}.`,
    });
  }
  const lines = readFileSync(file, "utf8").trimEnd().split("\n").slice(-SHOWN_LINES);
  if (out.json) out.value({ file, lines });
  else for (const line of lines) out.line(line);
  return 0;
}

/** Without the token. */
function shown({ token: _token, ...hub }: HubRecord): Omit<HubRecord, "token"> {
  return hub;
}
