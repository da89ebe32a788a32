/** What the dialects share: foreign names of keys, foreign forms of values, and the way from an entry to a ServerSpec. */
import { dirname } from "node:path";
import type { ClientId } from "../../clients/client.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { ServerEntrySchema, ServerIdSchema, type ServerSpec } from "../../model/server-spec.ts";
import type { ConfigPath } from "../config-path.ts";
import type { Diagnostic } from "../diagnostics.ts";
import type { Document } from "../document.ts";
import { entryNode } from "../json-schema.ts";
import { serverProblems, serverWarnings } from "../server-rules.ts";
import { validate } from "../validate.ts";
import { renameKeys } from "./aliases.ts";
import { startsToolcrib } from "./own-entry.ts";

/** Forms that a file's content tells apart. */
export type FileDialect = "toolcrib" | "claude" | "vscode" | "list" | "openclaw" | "acp";

/** Or the client whose file it is, where that is known beforehand. */
export type DialectName = FileDialect | ClientId;

export interface DialectRead {
  readonly dialect: DialectName;
  readonly servers: ServerSpec[];
  /** Servers that only one agent of the file's program has, by its id. */
  readonly roleServers: Record<string, ServerSpec[]>;
  readonly warnings: Diagnostic[];
  /** Entries that could not be read, and are not among the servers. */
  readonly problems: Diagnostic[];
  /** Ids of entries that start Toolcrib itself, and are not among the servers. */
  readonly own: readonly string[];
}

/** Reads the entries of one file and collects what there is to say about them. */
export class EntryReader {
  readonly document: Document;
  readonly baseDir: string;
  readonly userHome: string;
  readonly warnings: Diagnostic[] = [];
  readonly problems: Diagnostic[] = [];
  readonly #dialect: DialectName;
  readonly #own: string[] = [];

  constructor(document: Document, dialect: DialectName, options: { baseDir?: string; userHome: string }) {
    this.document = document;
    this.#dialect = dialect;
    this.baseDir = options.baseDir ?? dirname(document.file);
    this.userHome = options.userHome;
  }

  warn(path: ConfigPath, code: string, message: string, hint?: string): void {
    this.warnings.push(this.document.report(path, { severity: "warning", code, message, hint }));
  }

  refuse(path: ConfigPath, code: string, message: string, hint?: string): void {
    this.problems.push(this.document.report(path, { severity: "error", code, message, hint }));
  }

  /** An entry in this program's foreign words; undefined, with a problem noted, if it makes no server. */
  readForeign(id: string, path: ConfigPath, raw: unknown): ServerSpec | undefined {
    if (!isJsonObject(raw)) {
      this.refuse(path, "wrong_server", "found no object; allowed is an object that describes a server");
      return undefined;
    }
    if (startsToolcrib(id, raw)) {
      this.#own.push(id);
      this.warn(path, "own_entry", "this entry starts Toolcrib itself; it is left out");
      return undefined;
    }
    const draft = renameKeys(raw, (key, message) => this.warn([...path, ...key], "adapted", message));
    return this.readOwn(id, path, draft);
  }

  /** An entry in Toolcrib's own words. */
  readOwn(id: string, path: ConfigPath, raw: unknown): ServerSpec | undefined {
    const { output, problems, warnings } = validate(this.document, path, raw, ServerEntrySchema, entryNode());
    this.warnings.push(...warnings);
    this.problems.push(...problems);
    if (output === undefined) return undefined;
    const wrong = serverProblems(this.document, path, output);
    this.problems.push(...wrong);
    if (wrong.length > 0) return undefined;
    this.warnings.push(...serverWarnings(this.document, path, output));
    return { ...output, id, origin: { file: this.document.file, dialect: this.#dialect }, baseDir: this.baseDir };
  }

  /** An id that Toolcrib takes; a changed one is told of. `taken` keeps two changed ids from becoming one. */
  validId(wanted: string, path: ConfigPath, taken: ReadonlySet<string>): string {
    if (ServerIdSchema.safeParse(wanted).success) return wanted;
    const plain =
      wanted
        .replace(/[^A-Za-z0-9._@ -]+/g, "-")
        .replace(/^[^A-Za-z0-9]+/, "")
        .slice(0, 60) || "server";
    let id = plain;
    for (let count = 2; taken.has(id) || !ServerIdSchema.safeParse(id).success; count++) id = `${plain}-${count}`;
    this.warn(
      path,
      "renamed",
      `the name ${JSON.stringify(wanted.slice(0, 80))} is no valid id; it is called ${JSON.stringify(id)} here`,
    );
    return id;
  }

  /** The entries of an object by id, in the file's order. `prepare` gives undefined for an entry that it refused. */
  readMap(
    path: ConfigPath,
    map: JsonObject,
    prepare: (raw: unknown, at: ConfigPath) => unknown = (raw) => raw,
  ): ServerSpec[] {
    const taken = new Set(Object.keys(map));
    const servers: ServerSpec[] = [];
    for (const [key, raw] of Object.entries(map)) {
      const at = [...path, key];
      const prepared = prepare(raw, at);
      if (prepared === undefined) continue;
      const id = this.validId(key, at, taken);
      taken.add(id);
      const spec = this.readForeign(id, at, prepared);
      if (spec !== undefined) servers.push(spec);
    }
    return servers;
  }

  /** Of entries with one id the last counts, as with keys of an object. */
  withoutTwins(servers: readonly ServerSpec[], path: ConfigPath): ServerSpec[] {
    const byId = new Map<string, ServerSpec>();
    for (const spec of servers) {
      if (byId.delete(spec.id))
        this.warn(path, "duplicate_id", `the id ${JSON.stringify(spec.id)} occurs twice; the last one counts`);
      byId.set(spec.id, spec);
    }
    return [...byId.values()];
  }

  finish(servers: ServerSpec[], roleServers: Record<string, ServerSpec[]> = {}): DialectRead {
    const { warnings, problems } = this;
    return { dialect: this.#dialect, servers, roleServers, warnings, problems, own: this.#own };
  }
}
