/** Skills that a project declares in its package.json: `"agentskills": {"skills": {"name": "source"}}`. */
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { WantedSource } from "./read-source.ts";

export interface DeclaredSkills {
  readonly file: string;
  readonly sources: readonly WantedSource[];
}

/** Of the nearest package.json, upward from the folder. Paths in it start from it. */
export async function declaredSkills(cwd: string): Promise<DeclaredSkills> {
  const file = await nearestPackage(cwd);
  if (file === undefined) {
    throw new ToolcribError("invalid_arguments", `Name a source: there is no package.json in ${cwd} or above it.`, {
      hint: "toolcrib skill install <folder, archive, git address or npm:package>",
    });
  }
  const skills = skillsOf(file.text, file.path);
  const sources = Object.entries(skills).map(([name, source]): WantedSource => {
    if (typeof source === "string" && source.trim() !== "") return { source, name, cwd: dirname(file.path) };
    throw new ToolcribError("invalid_config", `${file.path}: agentskills.skills.${name} must be the text of a source.`);
  });
  if (sources.length > 0) return { file: file.path, sources };
  throw new ToolcribError("invalid_arguments", `Name a source: ${file.path} declares no skills.`, {
    hint: 'It would be done with "agentskills": { "skills": { "name": "source" } }.',
  });
}

function skillsOf(text: string, file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (cause) {
    throw new ToolcribError("invalid_config", `${file} is no JSON.`, { cause });
  }
  const block = isJsonObject(value) ? value["agentskills"] : undefined;
  const skills = isJsonObject(block) ? (block["skills"] ?? {}) : {};
  if (block !== undefined && (!isJsonObject(block) || !isJsonObject(skills))) {
    throw new ToolcribError("invalid_config", `${file}: agentskills.skills must be an object of names and sources.`);
  }
  return isJsonObject(skills) ? skills : {};
}

export async function nearestPackage(cwd: string): Promise<{ path: string; text: string } | undefined> {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    const text = await readFile(path, "utf8").catch(() => undefined);
    if (text !== undefined) return { path, text };
    if (folder === dirname(folder)) return undefined;
  }
}
