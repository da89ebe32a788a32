import { resolve } from "node:path";
import type { LoadedConfig } from "../config/load-config.ts";
import type { OwnHost } from "../sessions/own/own-host.ts";
import { Session, type SessionOptions } from "../sessions/session.ts";
import type { HubOptions } from "./hub-options.ts";

/** The session of the program that makes the hub. */
export function hubSession(config: LoadedConfig, options: HubOptions, host: OwnHost): Session {
  const fromConfig = config.config.workspaceDir;
  const workspaceDir = options.workspaceDir ?? (fromConfig && resolve(config.baseDir, fromConfig));
  const given: SessionOptions = {
    owner: true,
    ...(options.door === undefined ? {} : { door: options.door }),
    ...(workspaceDir === undefined ? {} : { workspaceDir }),
    ...(options.role === undefined ? {} : { role: options.role }),
    ...(options.onSample === undefined ? {} : { onSample: options.onSample }),
    ...(options.onElicit === undefined ? {} : { onElicit: options.onElicit }),
  };
  return new Session(given, undefined, host);
}
