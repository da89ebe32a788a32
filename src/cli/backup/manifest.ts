/** `manifest.json` of a backup: what is in it, so that a restore can tell a whole one from a damaged one. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { ToolcribError } from "../../model/errors.ts";

export const MANIFEST = "manifest.json";
export const BACKUP_VERSION = 1;

const FileSchema = z.object({
  path: z.string().min(1),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const ManifestSchema = z.object({
  format: z.literal("toolcrib-backup"),
  version: z.int().min(1),
  madeAt: z.string(),
  toolcrib: z.string(),
  store: z.enum(["sqlite", "postgres"]).nullable(),
  files: z.array(FileSchema),
});

export type Manifest = z.output<typeof ManifestSchema>;
export type ManifestFile = z.output<typeof FileSchema>;

export async function readManifest(dir: string, backup: string): Promise<Manifest> {
  const text = await readFile(join(dir, MANIFEST), "utf8").catch(() => undefined);
  const value = text === undefined ? undefined : parseJson(text);
  const version = z.object({ format: z.literal("toolcrib-backup"), version: z.int() }).safeParse(value).data?.version;
  if (version !== undefined && version > BACKUP_VERSION) {
    throw new ToolcribError(
      "invalid_arguments",
      `${backup} is a backup of version ${version}; this Toolcrib knows ${BACKUP_VERSION}.`,
      {
        hint: "Restore it with the Toolcrib that made it, or a newer one.",
      },
    );
  }
  const parsed = ManifestSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ToolcribError(
    "invalid_arguments",
    `${backup} is no backup of Toolcrib, or a damaged one: it has no usable ${MANIFEST}.`,
    {
      hint: "Give a file that `toolcrib backup` made. Nothing was changed.",
    },
  );
}

/** All files below the folder, by path with slashes; in order. */
export async function describeFiles(dir: string): Promise<ManifestFile[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files: ManifestFile[] = [];
  for (const path of paths.toSorted()) {
    const { size } = await stat(path);
    files.push({ path: relative(dir, path).split(sep).join("/"), bytes: size, sha256: await digestOf(path) });
  }
  return files;
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
