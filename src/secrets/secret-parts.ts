/** What of a value is secret: all of it, or of an address the parts that open something. */
import { isPlainText, looksLikeCredential } from "./looks-like-secret.ts";

export interface SecretPart {
  readonly value: string;
  /** So many characters at its beginning say nothing secret: they are masked with the rest only. */
  readonly open: number;
}

const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/(?:([^:/?#@]*)(?::([^/?#]*))?@)?([^/?#]*[/?#]?)/i;

/** The value itself first. */
export function secretParts(value: string): SecretPart[] {
  const [start, scheme = "", user, password, host = ""] = ADDRESS.exec(value) ?? [];
  if (start === undefined) return [{ value, open: 0 }];
  const parts: SecretPart[] = [];
  if (user !== undefined && password !== undefined && password !== "") {
    for (const [name, word] of [
      [user, password],
      [decoded(user), decoded(password)],
    ] as const) {
      parts.push({ value: `${name}:${word}`, open: name.length + 1 });
      // `postgres://postgres:postgres@…`: masked alone, it would blot out what everybody may read.
      if (word !== scheme && word !== name) parts.push({ value: word, open: 0 });
    }
  }
  for (const each of queryValues(value)) parts.push({ value: each, open: 0 });
  const open = openLength({ scheme, user, password, host });
  return [{ value, open }, ...parts.filter((part) => isPlainText(part.value))];
}

interface Address {
  readonly scheme: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly host: string;
}

/** A name without a password may be a token; behind the host everything may be one. */
function openLength({ scheme, user, password, host }: Address): number {
  const begin = scheme.length + "://".length;
  if (user === undefined) return begin + host.length;
  return password === undefined ? begin : begin + user.length + 1;
}

/** As written and as meant. */
function queryValues(address: string): string[] {
  const [, query = ""] = /\?([^#]*)/.exec(address) ?? [];
  return query.split("&").flatMap((pair) => {
    const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(pair) ?? [];
    return looksLikeCredential(decoded(name)) ? [value, decoded(value.replaceAll("+", " "))] : [];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
