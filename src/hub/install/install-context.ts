/** The machine and the files that an install works on. */
import { localClientEnvironment, toolcribHome, userHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { ClientEnvironment } from "../../clients/agent-client.ts";
import type { SecretPlace } from "../../secrets/secret-storage.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import type { ServerVariables } from "../../skills/servers/placeholders.ts";

export interface InstallContext extends SecretPlace {
  readonly cwd: string;
  /** The config that servers are written into; it need not be there yet. */
  readonly configFile: string;
  readonly config: LoadedConfig;
  readonly registry: SkillRegistry;
  /** As the files of clients are found. */
  readonly clients: ClientEnvironment;
}

export function createInstallContext(
  given: Pick<InstallContext, "env" | "cwd" | "configFile" | "config" | "registry">,
): InstallContext {
  const { env, cwd } = given;
  return { ...given, home: toolcribHome(env), userHome: userHome(env), clients: localClientEnvironment(env, cwd) };
}

/** Values of `${CWD}` and other variables in a skill's templates. */
export function templateVariables({ cwd, userHome: home, config }: InstallContext, skillDir: string): ServerVariables {
  return { CWD: cwd, WORKSPACE: config.config.workspaceDir ?? cwd, HOME: home, SKILL_DIR: skillDir };
}
