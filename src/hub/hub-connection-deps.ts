/** What the connections of a hub share. */
import { join } from "node:path";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Clock } from "../model/clock.ts";
import type { SessionContext } from "../model/session.ts";
import { VERSION } from "../model/version.ts";
import { OAuth } from "../secrets/oauth/oauth.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { OwnHost } from "../sessions/own/own-host.ts";
import { ALL_OFFERS } from "../upstream/client-offer.ts";
import type { ConnectionDeps } from "../upstream/connection-deps.ts";
import { FileEraMemory } from "../upstream/era-memory.ts";
import { rootOf } from "../upstream/offered-roots.ts";
import type { PidRecords } from "../upstream/orphans/pid-records.ts";
import type { StderrLog } from "../upstream/stdio/stderr-log.ts";
import { configuredWorkspace } from "./hub-session.ts";

export interface HubConnectionParts {
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  readonly redactor: Redactor;
  readonly secrets: Secrets;
  readonly pids: PidRecords;
  readonly stderr: StderrLog;
  readonly session: SessionContext;
  /** Whether the folder of the session is only where an agent works: then servers are offered the one of the config. */
  readonly rootsOnRequest: boolean;
  readonly idleClient: NonNullable<ConnectionDeps["idleClient"]>;
  /** These two are asked when a connection is made: it takes what holds then. */
  readonly config: () => LoadedConfig;
  readonly logLevel: () => string;
}

export function hubConnectionDeps(parts: HubConnectionParts): OwnHost["deps"] {
  const { clock, env, home, redactor, secrets, pids, stderr, session, rootsOnRequest, idleClient, config, logLevel } =
    parts;
  const workspace = rootsOnRequest ? configuredWorkspace(config()) : session.workspaceDir;
  const workspaceRoots = workspace === undefined ? [] : [rootOf(workspace)];
  return {
    clock,
    env,
    eras: new FileEraMemory(join(home, "cache", "eras.json")),
    pids,
    redactor,
    stderr,
    secrets,
    oauth: new OAuth({ dir: join(home, "auth"), clock, redactor }),
    hubSession: session,
    idleClient,
    mostSeats: () => config().config.limits.sessionConnections,
    offers: ALL_OFFERS,
    workspaceRoots,
    clientVersion: VERSION,
    cages: { home, containers: () => config().config.containers },
    get logLevel() {
      return logLevel();
    },
    get graceMs() {
      return config().config.limits.graceMs;
    },
  };
}
