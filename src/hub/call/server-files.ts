/** Where the server of a call looks for files, and what the paths in its arguments lead to. */
import { homedir } from "node:os";
import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import { LruMap } from "../../base/maps.ts";
import { followLinks } from "../../files/path-safety.ts";
import { sandboxKindOf, type ServerSpec } from "../../model/server-spec.ts";
import type { FilePlace } from "../../policy/argument-values.ts";
import type { Session } from "../../sessions/session.ts";
import { startFolder } from "../../upstream/link.ts";

interface ServerFilesOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Toolcrib's own folder. */
  readonly home: string;
  /** Undefined for what is not a server: it runs in this process. */
  readonly specOf: (source: string) => ServerSpec | undefined;
}

interface PlaceOfFiles {
  readonly place: FilePlace;
  /** Whether its files are those of this machine, so that links can be followed. */
  readonly isLocal: boolean;
}

const ELSEWHERE: PlaceOfFiles = { place: { home: undefined, bases: [] }, isLocal: false };
const MAX_PLACES = 1000;

export class ServerFiles {
  readonly #options: ServerFilesOptions;
  /** The same object for the same place, because patterns are compiled for it. */
  readonly #places = new LruMap<string, PlaceOfFiles>(MAX_PLACES);

  constructor(options: ServerFilesOptions) {
    this.#options = options;
  }

  of(source: string, { roots }: Session): PlaceOfFiles {
    const spec = this.#options.specOf(source);
    if (spec !== undefined && (spec.url !== undefined || isContainer(spec))) return ELSEWHERE;
    const key = JSON.stringify([source, spec?.cwd, spec?.baseDir, spec?.env?.["HOME"], roots.map(({ uri }) => uri)]);
    let found = this.#places.get(key);
    if (found === undefined) {
      found = { place: { home: this.#homeOf(spec), bases: this.#basesOf(spec, roots) }, isLocal: true };
      this.#places.set(key, found);
    }
    return found;
  }

  async follow(paths: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
    return new Map(await Promise.all(paths.map(async (path) => [path, await followLinks(path)] as const)));
  }

  #homeOf(spec: ServerSpec | undefined): string | undefined {
    const { env } = this.#options;
    const home = spec?.env?.["HOME"] ?? env["HOME"] ?? env["USERPROFILE"] ?? homedir();
    return isAbsolute(home) ? home : undefined;
  }

  /** None if its own folder is not known: a reference is resolved when it starts. */
  #basesOf(spec: ServerSpec | undefined, roots: Session["roots"]): string[] {
    const { env, home } = this.#options;
    const isFree = spec?.sandbox === undefined || sandboxKindOf(spec.sandbox) === "none";
    const own =
      spec === undefined
        ? process.cwd()
        : (spec.cwd ?? (isFree ? (startFolder(spec, home, env) ?? process.cwd()) : ""));
    if (!isAbsolute(own) || own.includes("${")) return [];
    return [...new Set([own, ...roots.flatMap(({ uri }) => folderOf(uri))])];
  }
}

function isContainer({ sandbox }: ServerSpec): boolean {
  return sandbox !== undefined && sandboxKindOf(sandbox) === "container";
}

function folderOf(uri: string): string[] {
  try {
    return [fileURLToPath(uri)];
  } catch {
    return [];
  }
}
