import { resolve } from "node:path";
import type { LoadedConfig } from "../config/load-config.ts";
import type { OwnHost } from "../sessions/own/own-host.ts";
import { Session, type SessionOptions } from "../sessions/session.ts";
import type { HubOptions } from "./hub-options.ts";

/** Absolute. */
export function configuredWorkspace({ config, baseDir }: LoadedConfig): string | undefined {
  return config.workspaceDir && resolve(baseDir, config.workspaceDir);
}

/** The session of the program that makes the hub. */
export function hubSession(config: LoadedConfig, options: HubOptions, host: OwnHost): Session {
  const workspaceDir = options.workspaceDir ?? configuredWorkspace(config);
  const given: SessionOptions = {
    owner: true,
    door: options.door,
    workspaceDir,
    ...(options.rootsOnRequest === true ? { rootsOnRequest: true } : {}),
    ...(options.role === undefined ? {} : { role: options.role }),
    ...(options.onSample === undefined ? {} : { onSample: options.onSample }),
    ...(options.onElicit === undefined ? {} : { onElicit: options.onElicit }),
  };
  return new Session(given, undefined, host);
}
