/**
 * `toolcrib mcp`, before anything else is loaded: attaches to the hub that runs on the home, or starts one; with `--hub`, to
 * another. Options that it does not know, and a hub that cannot be shared, lead to the command itself.
 */
import type { Duplex } from "node:stream";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { assertSafeHome } from "../../files/path-safety.ts";
import { programName } from "../../files/processes.ts";
import { findHub } from "../../hub/activity/hub-records.ts";
import type { BridgeHello } from "../../doors/mcp/bridge-door.ts";
import { BRIDGE_PATH, BRIDGE_PROTOCOL } from "../../model/bridge.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isNewer, VERSION } from "../../model/version.ts";
import { startHub } from "../hub/start-hub.ts";
import type { EditorSession } from "../remote-hub.ts";
import { Bridge, uptimeMs } from "./bridge.ts";
import { openHubLink } from "./hub-link.ts";

interface BridgeFlags {
  readonly config?: string;
  readonly server?: string;
  readonly role?: string;
  readonly view?: string;
  readonly client?: string;
  readonly session?: string;
  readonly hub?: string;
  readonly token?: string;
  readonly quiet?: boolean;
}

/** A hub that ends, or that is being replaced, is found for a moment longer. */
const REPLACING_MS = 5000;
const PAUSE_MS = 50;
/** They are sent in a header. */
const MAX_VALUE_LENGTH = 4096;

/** Undefined if the command itself has to serve the client. */
async function attach(): Promise<number | undefined> {
  const [, , command, ...args] = process.argv;
  const flags = command === "mcp" ? parseFlags(args) : undefined;
  if (flags === undefined) return undefined;
  const tell = (message: string): void => {
    if (flags.quiet !== true) process.stderr.write(`toolcrib: ${message}\n`);
  };
  // The hub has it in its instructions as well.
  let warned: string | undefined;
  const onWarning = (text: string): void => {
    if (text !== warned) tell(text);
    warned = text;
  };
  const connectedTo = (version: string | undefined): void => {
    if (version === undefined || version === VERSION) return;
    const text = `This client uses Toolcrib ${VERSION}, and its hub is version ${version}. ${skewAdvice(version)}`;
    tell(text);
    bridge.warn(text);
  };
  const connect =
    flags.hub === undefined ? ownHub(flags, connectedTo, onWarning) : otherHub(flags, flags.hub, connectedTo);
  // A session that the editor has closed does not come back.
  const reconnectMs = flags.session === undefined ? undefined : 0;
  const bridge = new Bridge({ input: process.stdin, output: process.stdout, connect, tell, reconnectMs });
  try {
    return await bridge.run();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (flags.hub !== undefined || flags.session !== undefined) {
      process.stderr.write(`toolcrib: ${reason}\n`);
      return 1;
    }
    tell(`${reason.replace(/[^.!?]$/, "$&.")} This client gets a hub of its own.`);
    process.argv.push("--standalone");
    return undefined;
  }
}

type Connect = () => Promise<Duplex>;

function ownHub(
  { config, server, role, view, client, session: wanted }: BridgeFlags,
  connectedTo: (version?: string) => void,
  onWarning: (text: string) => void,
): Connect {
  const { env } = process;
  const cwd = process.cwd();
  const home = toolcribHome(env);
  let files: readonly string[] | undefined;
  // Not a secret: only the user's own programs can open a bridge.
  const conversation = `${process.pid}-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  return async () => {
    if (files === undefined) {
      assertSafeHome(home, env);
      files = configFiles({ config, env, cwd, home });
    }
    const until = uptimeMs() + REPLACING_MS;
    for (;;) {
      const joined = wanted === undefined ? undefined : await editorSession(home, wanted);
      const hub = joined?.hub ?? findHub(home, files) ?? (await startHub({ home, env, cwd, files, config }));
      const hello: BridgeHello = {
        ...{ version: VERSION, server, role, view, client, session: joined?.id, cwd, conversation },
        pid: process.pid,
        program: programName(process.ppid),
        entry: process.argv[1],
        env: pickEnv(hub.clientEnv ?? []),
      };
      try {
        const link = await openHubLink(hub, hello, { path: BRIDGE_PATH, protocol: BRIDGE_PROTOCOL, onWarning });
        connectedTo(hub.version);
        return link;
      } catch (error) {
        const isGone = error instanceof ToolcribError && error.code === "server_unavailable";
        if (!isGone || joined !== undefined || uptimeMs() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  };
}

async function editorSession(home: string, wanted: string): Promise<EditorSession> {
  const { namedEditorSession } = await import("./remote-link.ts");
  return namedEditorSession(home, wanted);
}

function otherHub(
  { role, view, server, client, session, token }: BridgeFlags,
  url: string,
  connectedTo: (version?: string) => void,
): Connect {
  return async () => {
    const { openRemoteLink } = await import("./remote-link.ts");
    const place = {
      url,
      token: token ?? (process.env["TOOLCRIB_TOKEN"] || undefined),
      role,
      view,
      server,
      client,
      session,
    };
    const { link, version } = await openRemoteLink(place);
    connectedTo(version);
    return link;
  };
}

/** Only variables that the hub's config asks for. */
function pickEnv(names: readonly string[]): Record<string, string> | undefined {
  const set = names.flatMap((name): [string, string][] => {
    const value = process.env[name];
    return value === undefined || value.length > MAX_VALUE_LENGTH ? [] : [[name, value]];
  });
  return set.length === 0 ? undefined : Object.fromEntries(set);
}

function skewAdvice(hub: string): string {
  return isNewer(hub, VERSION)
    ? "Restart the client to use the newer version."
    : "A hub in the background restarts as the newer version when no call is in progress.";
}

/** The log is that of the hub; its options are for a hub of the client's own. */
const FLAG = /^--(config|server|role|view|client|session|hub|token|quiet|log-level|log-format)(?:=(.*))?$/s;

function parseFlags(args: readonly string[]): BridgeFlags | undefined {
  const flags: Record<string, string | boolean> = {};
  for (let at = 0; at < args.length; at++) {
    const [, name = "", inline] = FLAG.exec(args[at] ?? "") ?? [];
    if (name === "") return undefined;
    const value = name === "quiet" ? true : (inline ?? args[++at]);
    if (value === undefined) return undefined;
    flags[name] = value;
  }
  return flags;
}

// Not awaited at the top: this file is bundled as CommonJS, which starts with less.
void attach().then((exitCode) => {
  if (exitCode === undefined) return import("../main.ts");
  process.exit(exitCode);
});
