/** Which cage a server is in: its own, or the default that holds for servers like it. */
import { isAbsolute, join, resolve } from "node:path";
import type { Config } from "../model/config.ts";
import { cageKindOf, type SandboxEntry } from "../model/sandbox.ts";
import type { ServerSpec, SpecOrigin } from "../model/server-spec.ts";
import { workspaceOf } from "./dialects/claude.ts";

export interface CageDefaults {
  readonly config: Pick<Config, "sandbox" | "skills">;
  /** The folder that relative paths of the config start from. */
  readonly baseDir: string;
}

interface Caged {
  readonly url?: string | undefined;
  readonly sandbox?: SandboxEntry | undefined;
  readonly skill?: string | undefined;
  readonly origin: SpecOrigin;
}

/** A remote server runs elsewhere: no default holds for it. */
export function withCage<Spec extends Caged>(
  spec: Spec,
  defaults: CageDefaults,
): Spec & Pick<ServerSpec, "sandbox" | "sandboxFrom"> {
  if (spec.sandbox !== undefined || spec.url !== undefined) return spec;
  const { sandbox, skills } = defaults.config;
  const isOfSkill = spec.origin.dialect === "skill" || spec.skill !== undefined;
  if (isOfSkill && skills.sandbox !== undefined) {
    return { ...spec, sandbox: placed(skills.sandbox, defaults.baseDir), sandboxFrom: "skills" };
  }
  if (sandbox === undefined) return spec;
  return { ...spec, sandbox: placed(sandbox, defaults.baseDir), sandboxFrom: "hub" };
}

/** A server that a skill brought into the config runs from the skill's copy in Toolcrib's home, if from any folder. */
export function withSkillFolder(spec: ServerSpec, home: string): ServerSpec {
  return spec.skill === undefined ? spec : { ...spec, ownFolder: join(home, "skills", "homes", spec.skill) };
}

/**
 * An entry of a file that belongs to another program or a project: where this config has a cage for all, that file has
 * no say in it, neither by `sandbox` nor by a `cwd` outside of its own folder. Where it has none, any cage is a gain.
 */
export function withImportedCage(
  spec: ServerSpec,
  { config }: Pick<CageDefaults, "config">,
): { readonly spec: ServerSpec; readonly ignored: boolean } {
  const { skill: _skill, ...foreign } = spec;
  if (config.sandbox === undefined || cageKindOf(config.sandbox) === "none") return { spec: foreign, ignored: false };
  const { sandbox, ...rest } = foreign;
  return { spec: { ...rest, ownFolder: workspaceOf(spec.baseDir) }, ignored: sandbox !== undefined };
}

/** The server's own entry may start from another folder than the config that the default stands in. */
function placed(entry: SandboxEntry, baseDir: string): SandboxEntry {
  if (typeof entry === "string") return entry;
  const { read, write, ...rest } = entry;
  const from = (path: string): string => (isAbsolute(path) || /^[~$]/.test(path) ? path : resolve(baseDir, path));
  return {
    ...rest,
    ...(read === undefined ? {} : { read: read.map(from) }),
    ...(write === undefined ? {} : { write: write.map(from) }),
  };
}
