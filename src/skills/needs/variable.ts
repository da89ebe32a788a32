/** A variable of an environment; Windows does not tell the case of names apart (`Path`). Empty counts as not there. */
export function variableOf(env: NodeJS.ProcessEnv, name: string, platform: NodeJS.Platform): string | undefined {
  const exact = Object.hasOwn(env, name) ? env[name] : undefined;
  if (exact !== undefined && exact !== "") return exact;
  if (platform !== "win32") return undefined;
  const wanted = name.toUpperCase();
  return Object.entries(env).find(([key, value]) => key.toUpperCase() === wanted && value !== "")?.[1];
}
