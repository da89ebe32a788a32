import { resolve } from "node:path";
import type { LoadedConfig } from "../config/load-config.ts";
import { Session } from "../sessions/session.ts";
import type { HubOptions } from "./hub-options.ts";

/** The session of the program that makes the hub. */
export function hubSession(config: LoadedConfig, options: HubOptions): Session {
  const fromConfig = config.config.workspaceDir;
  const workspaceDir = options.workspaceDir ?? (fromConfig && resolve(config.baseDir, fromConfig));
  return new Session({
    owner: true,
    door: options.door ?? "library",
    ...(workspaceDir === undefined ? {} : { workspaceDir }),
    ...(options.role === undefined ? {} : { role: options.role }),
    ...(options.onSample === undefined ? {} : { onSample: options.onSample }),
    ...(options.onElicit === undefined ? {} : { onElicit: options.onElicit }),
  });
}
