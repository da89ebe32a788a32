/** Defaults for a server whose entry does not say: when it starts, its sandbox, and the variables that it inherits. */
import { isAbsolute, join, resolve } from "node:path";
import type { Config } from "../model/config.ts";
import { type SandboxEntry, sandboxKindOf, type ServerSpec, type SpecOrigin } from "../model/server-spec.ts";
import { workspaceOf } from "./dialects.ts";

export interface ServerDefaults {
  readonly config: Pick<Config, "env" | "sandbox" | "skills" | "start">;
  /** The folder that relative paths of the config start from. */
  readonly baseDir: string;
}

interface DefaultedSpec {
  readonly url?: string | undefined;
  readonly sandbox?: SandboxEntry | undefined;
  readonly skill?: string | undefined;
  readonly origin: SpecOrigin;
}

/** A remote server runs elsewhere: no sandbox and no environment apply to it. */
export function withServerDefaults<Spec extends DefaultedSpec>(
  entry: Spec,
  defaults: ServerDefaults,
): Spec & Pick<ServerSpec, "sandbox" | "sandboxFrom" | "hubInherit" | "hubStart"> {
  const { env, start } = defaults.config;
  const spec = start === undefined ? entry : { ...entry, hubStart: start };
  if (spec.url !== undefined) return spec;
  return withSandbox(env.inherit === undefined ? spec : { ...spec, hubInherit: env.inherit }, defaults);
}

function withSandbox<Spec extends DefaultedSpec>(
  spec: Spec,
  defaults: ServerDefaults,
): Spec & Pick<ServerSpec, "sandbox" | "sandboxFrom"> {
  if (spec.sandbox !== undefined) return spec;
  const { sandbox, skills } = defaults.config;
  const isOfSkill = spec.origin.dialect === "skill" || spec.skill !== undefined;
  if (isOfSkill && skills.sandbox !== undefined) {
    return { ...spec, sandbox: withAbsolutePaths(skills.sandbox, defaults.baseDir), sandboxFrom: "skills" };
  }
  if (sandbox === undefined) return spec;
  return { ...spec, sandbox: withAbsolutePaths(sandbox, defaults.baseDir), sandboxFrom: "hub" };
}

/** A server that a skill brought into the config runs from the skill's copy in Toolcrib's home, if from any folder. */
export function withSkillFolder(spec: ServerSpec, home: string): ServerSpec {
  return spec.skill === undefined ? spec : { ...spec, ownFolder: join(home, "skills", "homes", spec.skill) };
}

/**
 * An entry of a file that belongs to another program or a project: where this config has a sandbox for all, that file
 * cannot change it, neither by `sandbox` nor by a `cwd` outside of its own folder. Otherwise any sandbox is a gain.
 */
export function withImportedSandbox(
  spec: ServerSpec,
  { config }: Pick<ServerDefaults, "config">,
): { readonly spec: ServerSpec; readonly ignored: boolean } {
  const { skill: _skill, ...foreign } = spec;
  if (config.sandbox === undefined || sandboxKindOf(config.sandbox) === "none")
    return { spec: foreign, ignored: false };
  const { sandbox, ...rest } = foreign;
  return { spec: { ...rest, ownFolder: workspaceOf(spec.baseDir) }, ignored: sandbox !== undefined };
}

/** Paths of a default start from the folder of its config, not from that of the server's entry. */
function withAbsolutePaths(entry: SandboxEntry, baseDir: string): SandboxEntry {
  if (typeof entry === "string") return entry;
  const { read, write, ...rest } = entry;
  const from = (path: string): string => (isAbsolute(path) || /^[~$]/.test(path) ? path : resolve(baseDir, path));
  return {
    ...rest,
    ...(read === undefined ? {} : { read: read.map(from) }),
    ...(write === undefined ? {} : { write: write.map(from) }),
  };
}
