/**
 * `toolcrib mcp`, before anything else is loaded: attaches to the hub that runs on the home, or starts one. Options that it does
 * not know, and a hub that cannot be reached, lead to the command itself.
 */
import { readFileSync } from "node:fs";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { assertSafeHome } from "../../files/path-safety.ts";
import { findHub, type HubRecord } from "../../hub/activity/hub-records.ts";
import type { BridgeHello } from "../../model/bridge.ts";
import { VERSION } from "../../model/version.ts";
import { Bridge } from "./bridge.ts";
import { openHubLink } from "./hub-link.ts";

interface BridgeFlags {
  readonly config?: string;
  readonly server?: string;
  readonly role?: string;
  readonly quiet?: boolean;
}

/** Undefined if the command itself has to serve the client. */
async function attach(): Promise<number | undefined> {
  const [, , command, ...args] = process.argv;
  const flags = command === "mcp" ? parseFlags(args) : undefined;
  if (flags === undefined) return undefined;
  const { env } = process;
  const cwd = process.cwd();
  const tell = (message: string): void => {
    if (flags.quiet !== true) process.stderr.write(`toolcrib: ${message}\n`);
  };
  try {
    const home = toolcribHome(env);
    assertSafeHome(home, env);
    const files = configFiles({ config: flags.config, env, cwd, home });
    const { server, role } = flags;
    const hello: BridgeHello = { version: VERSION, server, role, pid: process.pid, program: parentProgram(), cwd };
    const connect = async (): ReturnType<typeof openHubLink> => {
      const hub = findHub(home, files) ?? (await start());
      if (hub.version !== undefined && hub.version !== VERSION) {
        tell(`The hub that runs is version ${hub.version}, this is ${VERSION}.`);
      }
      return openHubLink(hub, hello);
    };
    const start = async (): Promise<HubRecord> => {
      const { startHub } = await import("../hub/start-hub.ts");
      return startHub({ home, env, cwd, files, config: flags.config });
    };
    return await new Bridge({ input: process.stdin, output: process.stdout, connect, tell }).run();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell(`${reason} This client gets a hub of its own.`);
    process.argv.push("--standalone");
    return undefined;
  }
}

/** Linux says; elsewhere another program would have to be run for it. */
function parentProgram(): string | undefined {
  try {
    return readFileSync(`/proc/${process.ppid}/comm`, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** The log is that of the hub; its options are for a hub of the client's own. */
const FLAG = /^--(config|server|role|quiet|log-level|log-format)(?:=(.*))?$/s;

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

const exitCode = await attach();
if (exitCode === undefined) await import("../main.ts");
else process.exit(exitCode);
