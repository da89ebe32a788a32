/** A server that a skill offers as a container image, as a template that runs it so. */
import type { ContainerTemplate, RequiredServer, ServerParameter, ServerTemplate } from "../../model/skill.ts";
import { launchedPackage } from "./package-reference.ts";

/**
 * The same server in its container; the server itself if it names no image.
 * @param bounds What the operator gives the servers of skills.
 */
export function inContainer(
  server: RequiredServer,
  bounds: Omit<ContainerTemplate, "image" | "port"> = {},
): RequiredServer {
  const { docker, template, parameters } = server;
  if (docker === undefined) return server;
  const args = serverArguments(template);
  const env = template?.env ?? variablesFor(parameters);
  return {
    ...server,
    template: {
      ...(args.length === 0 ? {} : { args }),
      ...(Object.keys(env).length === 0 ? {} : { env }),
      container: { ...docker, ...bounds },
    },
  };
}

/** What follows the package is for the server itself, and its image starts the same one. */
function serverArguments(template: ServerTemplate | undefined): readonly string[] {
  if (template?.command === undefined) return [];
  return launchedPackage(template.command, template.args ?? [])?.rest ?? [];
}

/** Of a server that has no template: its parameters can only be meant for its environment. */
function variablesFor(parameters: readonly ServerParameter[]): Record<string, string> {
  const names = parameters.map(({ name }) => name).filter((name) => /^[A-Z][A-Z0-9_]*$/.test(name));
  return Object.fromEntries(names.map((name) => [name, `\${${name}}`]));
}
