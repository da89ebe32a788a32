/** The machine that the process runs on, with OpenClaw's config as far as skills ask for it. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import JSON5 from "json5";
import { openclaw } from "../../clients/openclaw.ts";
import { isJsonObject } from "../../model/json.ts";
import type { Machine } from "./check-needs.ts";

/** What OpenClaw takes for granted where its config says nothing. */
const OPENCLAW_DEFAULTS = new Set(["browser.enabled", "browser.evaluateEnabled"]);

/** The config is read when it is first asked for, once. Only yes or no leaves it, never a value. */
export function thisMachine(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): Machine {
  let config: { readonly value: unknown } | undefined;
  return {
    platform,
    env,
    hasConfig(path) {
      config ??= { value: readConfig(env, platform) };
      return saysYes(config.value, path);
    },
  };
}

function saysYes(config: unknown, path: string): boolean {
  if (config === undefined) return false;
  let value: unknown = config;
  for (const step of path.split(".").filter((part) => part !== "")) {
    value = isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  if (value === undefined) return OPENCLAW_DEFAULTS.has(path);
  return typeof value === "string" ? value.trim() !== "" : Boolean(value);
}

/** undefined where OpenClaw has none, or one that cannot be read: then nothing is known to be there. */
function readConfig(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): unknown {
  const home = env["HOME"] || env["USERPROFILE"] || homedir();
  try {
    const [file] = openclaw.files({ platform, home, env, projectDir: home });
    if (file === undefined) return undefined;
    return JSON5.parse<unknown>(readFileSync(file.path, "utf8").replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
}
