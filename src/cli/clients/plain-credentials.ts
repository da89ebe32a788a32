/** Credentials that stand in an imported entry as plain text: where, never what. */
import type { ServerEntryInput } from "../../model/server-spec.ts";
import { isPlainText, looksLikeCredential } from "../../secrets/looks-like-secret.ts";

export interface PlainCredential {
  readonly server: string;
  /** Such as `env.GITHUB_TOKEN`. */
  readonly key: string;
  /** What `toolcrib secrets set` could call it. */
  readonly name: string;
}

export function plainCredentials(server: string, entry: ServerEntryInput): PlainCredential[] {
  const found: PlainCredential[] = [];
  const add = (key: string, name: string): void => void found.push({ server, key, name: variableName(name) });
  for (const [name, value] of Object.entries(entry.env ?? {})) {
    if (looksLikeCredential(name) && isPlainText(value)) add(`env.${name}`, name);
  }
  for (const [name, value] of Object.entries(entry.headers ?? {})) {
    if (looksLikeCredential(name) && isPlainText(value)) add(`headers.${name}`, `${server}_${name}`);
  }
  for (const [index, arg] of (entry.args ?? []).entries()) {
    const [, option, value] = /^--?([A-Za-z][\w-]*)(?:=(.+))?$/s.exec(arg) ?? [];
    if (option === undefined || !looksLikeCredential(option)) continue;
    const next = value ?? entry.args?.[index + 1];
    if (next !== undefined && !next.startsWith("-") && isPlainText(next)) {
      add(`args[${value === undefined ? index + 1 : index}]`, `${server}_${option}`);
    }
  }
  return found;
}

export function adviceFor({ server, key, name }: PlainCredential): string {
  return (
    `${server}: ${key} is a credential in plain text. ` +
    `Move it: \`toolcrib secrets set ${name}\` stores it and prints the reference to write in its place.`
  );
}

/** A name that `toolcrib secrets set` takes. */
function variableName(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toUpperCase()
    .slice(0, 64);
  return /^\d/.test(name) ? `_${name.slice(0, 63)}` : name;
}
