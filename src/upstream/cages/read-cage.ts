/** A `sandbox` entry of the config as settings that a cage can work with. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { cageKindOf, type SandboxEntry } from "../../model/sandbox.ts";
import { parseReferences } from "../../secrets/references.ts";
import type { CageSettings } from "./cage.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** @param env Says what `~` and `${NAME}` in paths stand for. */
export function readCage(entry: SandboxEntry, baseDir: string, env: NodeJS.ProcessEnv): CageSettings {
  if (typeof entry === "string") return { kind: entry, read: [], write: [], network: "none" };
  const { kind: _kind, read, write, memory, network, ...rest } = entry;
  const absolute = (path: string): string => resolve(baseDir, expandHome(withVariables(path, env), env));
  return {
    ...withoutUndefined(rest),
    kind: cageKindOf(entry),
    read: [...new Set((read ?? []).map(absolute))],
    write: [...new Set((write ?? []).map(absolute))],
    network,
    ...(memory === undefined ? {} : { memory: bytesOf(memory) }),
  };
}

/** `512m`, `512MB` and `512MiB` are all 512 times 1024 times 1024. */
export function bytesOf(size: number | string): number {
  if (typeof size === "number") return size;
  const [, digits = "0", unit = ""] = /^(\d+)([kmgt]?)/i.exec(size) ?? [];
  return Number(digits) * (UNITS[unit.toLowerCase()] ?? 1);
}

/** A path is no place for a secret. */
function withVariables(path: string, env: NodeJS.ProcessEnv): string {
  const value = (part: ReturnType<typeof parseReferences>[number]): string => {
    if (typeof part === "string") return part;
    const found = part.kind === "variable" ? env[part.name] || part.fallback : undefined;
    if (found !== undefined) return found;
    const why = part.kind === "variable" ? "that variable is not set" : "secrets cannot stand in it";
    throw new ToolcribError("invalid_config", `A path of \`sandbox\` holds ${part.text}: ${why}.`, {
      hint: "Set it for the hub, write ${NAME:-default}, or write the path itself.",
      details: { sent: false },
    });
  };
  return parseReferences(path).map(value).join("");
}

function expandHome(path: string, env: NodeJS.ProcessEnv): string {
  if (path !== "~" && !path.startsWith("~/")) return path;
  return join(env["HOME"] || env["USERPROFILE"] || homedir(), path.slice(1));
}

type Present<T> = { [Key in keyof T]: Exclude<T[Key], undefined> };

function withoutUndefined<T extends object>(value: T): Present<T> {
  // What is left holds no undefined.
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Present<T>;
}
