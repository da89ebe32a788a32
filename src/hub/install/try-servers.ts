/** Connects to servers once, to see whether they work and what they offer, without a trace in Toolcrib's home. */
import { mkdir, rm } from "node:fs/promises";
import { withAbort } from "../../base/async.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { createHub } from "../create/create-hub.ts";
import { newTrialHome } from "./install-files.ts";
import { interruptedError } from "./install-journal.ts";

export interface TriedServer {
  readonly id: string;
  /** Public names. */
  readonly tools: readonly string[];
  /** Why it did not connect. */
  readonly failure?: string;
  readonly hint?: string;
  /** It needs a login, which is possible only once it is in the config. */
  readonly needsLogin?: true;
}

/** A first start may download the server. */
const MIN_TIMEOUT_MS = 120_000;

interface TryOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  readonly redactor?: Redactor | undefined;
  /** Learns the home of the hub before it is made, so that servers of an install that is killed are found again. */
  readonly onHome: (dir: string) => Promise<void>;
}

interface NeededServers {
  readonly needed: ReadonlySet<string>;
  /** Those that the install added. */
  readonly fresh: ReadonlySet<string>;
}

/** Throws `server_unavailable` if a new one does not connect. One that was there is the user's own business. */
export async function tryNeeded(
  config: LoadedConfig,
  { needed, fresh }: NeededServers,
  options: TryOptions,
): Promise<TriedServer[]> {
  // Of those that were there, one that is off stays off, and the login of a person is none for a mere look.
  const usable = config.servers.filter(
    ({ id, enabled, auth }) => needed.has(id) && (fresh.has(id) || (enabled && auth?.type !== "oauth")),
  );
  const tried = await connectOnce(
    config,
    usable.map(({ id }) => id),
    options,
  );
  const failed = tried.filter(({ id, failure }) => failure !== undefined && fresh.has(id));
  if (failed.length === 0) return tried;
  throw new ToolcribError(
    "server_unavailable",
    failed.map(({ id, failure }) => `The server ${id} did not connect: ${failure ?? ""}`).join("\n"),
    {
      hint: [
        ...failed.flatMap(({ id, hint }) => (hint === undefined ? [] : [`${id}: ${hint}`])),
        "Nothing was installed. Check the values that were given, and that its program can be started here.",
      ].join("\n  "),
      details: { servers: failed.map(({ id, failure }) => ({ id, reason: failure })) },
    },
  );
}

async function connectOnce(
  loaded: LoadedConfig,
  ids: readonly string[],
  { env, signal, redactor, onHome }: TryOptions,
): Promise<TriedServer[]> {
  if (ids.length === 0) return [];
  const home = newTrialHome();
  await onHome(home);
  await mkdir(home, { mode: 0o700 });
  try {
    const hub = await createHub(onlyServers(loaded, ids), {
      home,
      env,
      connect: "none",
      store: false,
      door: "cli",
      redactor,
    });
    try {
      const connecting = Promise.all(ids.map((id) => hub.servers.connect(id).catch(() => undefined)));
      await (signal === undefined ? connecting : withAbort(connecting, signal, interruptedError));
      const { tools } = hub.view(hub.session);
      return hub.servers.list().map((info) => ({
        id: info.id,
        tools: tools.filter(({ origin }) => origin.source === info.id).map(({ name }) => name),
        ...(info.status === "connected" ? {} : failureOf(info)),
      }));
    } finally {
      await hub.close();
    }
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

function failureOf({ auth, lastError, state, hint }: ServerInfo): Partial<TriedServer> {
  if (auth?.state === "login_needed") return { needsLogin: true };
  return { failure: lastError ?? `it is ${state}`, hint };
}

/** Neither the user's plugins nor other servers have anything to do with it. Pins are made at the first real use. */
function onlyServers(loaded: LoadedConfig, ids: readonly string[]): LoadedConfig {
  const { config, servers } = loaded;
  return {
    ...loaded,
    config: {
      ...config,
      plugins: [],
      skills: { ...config.skills, dirs: [], autoStart: false },
      guard: { ...config.guard, pins: "off" },
    },
    servers: servers
      .filter(({ id }) => ids.includes(id))
      .map((spec) => ({ ...spec, timeout: Math.max(spec.timeout, MIN_TIMEOUT_MS) })),
  };
}
