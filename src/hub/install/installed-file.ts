/** `$TOOLCRIB_HOME/installed.json`: what was put where for each skill, so that exactly that is taken out again. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ToolcribError } from "../../model/errors.ts";

const Scope = z.enum(["user", "project"]);

const InstalledSkillSchema = z.object({
  name: z.string(),
  source: z.string(),
  digest: z.string(),
  /** The install that wrote it. */
  run: z.string(),
  /** Copies of the skill in clients' folders. */
  folders: z.array(
    z.object({
      clients: z.array(z.string()),
      path: z.string(),
      digest: z.string(),
      /** What the user had there: a copy of it, or where it led to if it was a link. */
      replaced: z
        .object({ copy: z.string() })
        .or(z.object({ link: z.string() }))
        .optional(),
    }),
  ),
  servers: z.array(
    z.object({
      id: z.string(),
      /** Whether the install put it into the config; else it was there. */
      added: z.boolean(),
      /** The config that it is in. */
      file: z.string(),
      secrets: z.array(
        z.object({ name: z.string(), stored: z.enum(["keychain", "file"]), file: z.string().optional() }),
      ),
    }),
  ),
  /** Servers in files of clients. */
  entries: z.array(z.object({ client: z.string(), scope: Scope, file: z.string(), ids: z.array(z.string()) })),
  /** The copy that servers of the skill run from, where they do. */
  home: z.string().optional(),
  lockFile: z.string(),
});

const InstalledSchema = z.object({ version: z.literal(1), skills: z.record(z.string(), InstalledSkillSchema) });

export type InstalledSkill = z.output<typeof InstalledSkillSchema>;
/** By id of the skill. */
export type Installed = Readonly<Record<string, InstalledSkill>>;

export function installedFile(home: string): string {
  return join(home, "installed.json");
}

export async function readInstalled(home: string): Promise<Installed> {
  const file = installedFile(home);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  return parseInstalled(file, text);
}

/** Throws where the text is not what Toolcrib wrote: writing over it would lose the way back. */
export function parseInstalled(file: string, text: string | null): Installed {
  if (text === null || text.trim() === "") return {};
  try {
    return InstalledSchema.parse(JSON.parse(text)).skills;
  } catch (cause) {
    throw new ToolcribError("invalid_config", `${file}, where Toolcrib keeps what it installed, is damaged.`, {
      hint: "Move it away. What was installed before is then yours to take out.",
      cause,
    });
  }
}

export function renderInstalled(skills: Installed): string | null {
  const ids = Object.keys(skills).toSorted();
  if (ids.length === 0) return null;
  const sorted = Object.fromEntries(ids.map((id) => [id, skills[id]]));
  return `${JSON.stringify({ version: 1, skills: sorted }, null, 2)}\n`;
}
