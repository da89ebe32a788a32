/** What a person pastes to add a server: a command line, an address, or a snippet of any program's config. */
import { homedir } from "node:os";
import type { JsonObject } from "../model/json.ts";
import { type PlainCredential, plainCredentials, replaceCredentials } from "../secrets/plain-credentials.ts";
import { writeReference } from "../secrets/references.ts";
import { readServerEntry } from "./read-entry.ts";
import { commandEntry, type NamedEntry } from "./snippets/command-entry.ts";
import { withInputs } from "./snippets/entry-inputs.ts";
import { proposeId } from "./snippets/propose-id.ts";
import { notUnderstood, shellWords } from "./snippets/shell-words.ts";
import { type SnippetEntries, snippetEntries } from "./snippets/snippet-entries.ts";
import { snippetValue } from "./snippets/snippet-value.ts";
import { ServerIdSchema } from "../model/server-spec.ts";

export interface ParsedServer {
  /** Proposed; valid, and no two have the same. */
  serverId: string;
  /** In Toolcrib's own words. Where a plain secret stood there is a reference to a variable, and a warning says so. */
  config: JsonObject;
  /** No message holds a value. */
  warnings: string[];
}

/** Rejects with `invalid_arguments` or `invalid_config` that says what was not understood. */
export function parseServers(text: string): ParsedServer[] {
  const pasted = withoutFence(text);
  if (pasted === "") throw notUnderstood("it is empty");
  const { entries, warnings } = read(pasted);
  const taken = new Set<string>();
  return entries.map((named, index) => {
    const server = parsed(named, taken);
    taken.add(server.serverId);
    return index === 0 ? { ...server, warnings: [...warnings, ...server.warnings] } : server;
  });
}

function read(text: string): SnippetEntries {
  if (/^https?:\/\/\S+$/i.test(text)) return { entries: [{ entry: { url: text } }], warnings: [] };
  const value = snippetValue(text);
  if (value !== undefined) return snippetEntries(value);
  const line = text.replace(/^\$\s+/, "");
  if (/\n/.test(line.replace(/\\\r?\n/g, " ").trim())) throw notUnderstood("a command line is one line");
  return { entries: [withInputs(commandEntry(shellWords(line)))], warnings: [] };
}

/** Pages and chats put snippets between fences. */
function withoutFence(text: string): string {
  const [, inside] = /^```[^\n]*\n(.*?)\n?```$/s.exec(text.trim()) ?? [];
  return (inside ?? text).replace(/^\uFEFF/, "").trim();
}

function parsed({ id, entry: raw, warnings: told = [] }: NamedEntry, taken: ReadonlySet<string>): ParsedServer {
  const place = { origin: { file: "snippet", dialect: "snippet" }, baseDir: homedir(), userHome: homedir() };
  const { entry, warnings } = readServerEntry("pasted", raw, place);
  const wanted = id ?? proposeId(entry, taken);
  const isUsable = ServerIdSchema.safeParse(wanted).success && !taken.has(wanted);
  const serverId = isUsable ? wanted : proposeId({ command: wanted }, taken);
  const renamed =
    id !== undefined && !isUsable ? [`the name ${JSON.stringify(id.slice(0, 80))} cannot be an id here`] : [];
  const found = plainCredentials(entry);
  const names = new Map(found.map((each) => [each, variableFor(serverId, each)]));
  return {
    serverId,
    config: replaceCredentials(entry, found, (each) => writeReference("env", names.get(each) ?? "SECRET")),
    warnings: [
      ...renamed,
      ...told,
      ...warnings
        .filter(({ code }) => code !== "plain_credential")
        .map(
          ({ path, message, hint }) =>
            [path, message].filter((part) => part !== "").join(": ") + (hint === undefined ? "" : ` (${hint})`),
        ),
      ...found.map(
        (each) => `${each.where}: a plain secret stood here; it is now the variable ${names.get(each) ?? ""}`,
      ),
    ],
  };
}

/** The variable's own name in `env`, else one of the server's and the place's. */
function variableFor(serverId: string, { path, where }: PlainCredential): string {
  const [first, key] = path;
  if (first === "env" && typeof key === "string" && /^[A-Za-z_]\w*$/.test(key)) return key;
  const last = /authorization|token|bearer/i.test(where) ? "TOKEN" : "SECRET";
  const name = `${serverId}_${last}`.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
  return /^\d/.test(name) ? `_${name}` : name;
}
