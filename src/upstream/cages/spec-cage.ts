/** The cage of one server, as its spec asks for it. */
import { ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ConnectionDeps } from "../connection-deps.ts";
import type { Cage, CageDeps, CageSettings } from "./cage.ts";
import { openCage } from "./open-cage.ts";
import { readCage } from "./read-cage.ts";

export interface SpecCage {
  readonly settings: CageSettings;
  readonly baseDir: string;
  readonly deps: Omit<CageDeps, "warn">;
  open(warn: (message: string) => void): Cage;
}

/** Undefined for a server that runs like any other program. */
export function specCage(spec: ServerSpec, { cages, env }: ConnectionDeps): SpecCage | undefined {
  if (spec.sandbox === undefined || spec.sandbox === "none") return undefined;
  const { baseDir, ownFolder } = spec;
  const settings = { ...readCage(spec.sandbox, baseDir, env), ...(ownFolder === undefined ? {} : { ownFolder }) };
  if (settings.kind === "none") return undefined;
  if (cages === undefined) {
    throw new ToolcribError("invalid_config", "Its sandbox cannot be made: this program was not told how.", {
      hint: "Give the connection `cages`.",
      details: { sent: false },
    });
  }
  const deps = { home: cages.home, env, containers: cages.containers() };
  return { settings, baseDir, deps, open: (warn) => openCage(settings, { ...deps, warn }) };
}
