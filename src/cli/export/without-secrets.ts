/** Takes what is secret out of a config and puts references in its place. */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isPlainText, looksLikeCredential } from "../../secrets/looks-like-secret.ts";
import { plainCredentials, replaceCredentials } from "../../secrets/plain-credentials.ts";
import { writeReference } from "../../secrets/references.ts";
import { maskTokens } from "../../secrets/token-shapes.ts";
import { partsOf } from "./references.ts";
import type { VariableNames } from "./variable-names.ts";

export interface SecretsOut {
  readonly names: VariableNames;
  readonly warn: (message: string) => void;
}

/** Of a server's entry. Throws `invalid_config` for what no reference can replace. */
export function withoutPlainSecrets(id: string, entry: JsonObject, { names, warn }: SecretsOut): JsonObject {
  const found = plainCredentials(entry);
  const fixed = found.find(({ replaceable }) => !replaceable);
  if (fixed !== undefined) {
    throw new ToolcribError("invalid_config", `${fixed.where} of the server "${id}" holds a secret in plain text.`, {
      hint: "Put a reference such as ${NAME} or secret://env/NAME in its place, and export again.",
    });
  }
  return replaceCredentials(entry, found, ({ path, where }) => {
    const [first, ...rest] = path;
    const name = names.next([id, ...(first === "env" ? rest : path)]);
    warn(`${where} of the server "${id}" holds a secret in plain text: it becomes the variable ${name}.`);
    return writeReference("env", name);
  });
}

/** Names of variables and headers whose texts are exported as they stand: nothing about them looks like a secret. */
export function plainTextNames({ env, headers }: JsonObject): string[] {
  return [env, headers].flatMap((texts) =>
    Object.entries(isJsonObject(texts) ? texts : {}).flatMap(([name, text]) =>
      typeof text === "string" && isPlainText(text) ? [name] : [],
    ),
  );
}

/** Keys of the config, outside of servers, whose values are secret whatever they look like. */
const SECRET_KEYS = new Set(["token", "key", "apiKey", "clientSecret", "password"]);

/** Of everything else. */
export function withoutPlainTexts(config: JsonObject, { names, warn }: SecretsOut): JsonObject {
  const clean = (value: unknown, path: readonly (string | number)[]): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => clean(item, [...path, index]));
    if (isJsonObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item, [...path, key])]));
    }
    if (typeof value !== "string" || !isSecret(path.at(-1), value)) return value;
    const name = names.next(["toolcrib", ...path]);
    warn(`${path.join(".")} holds a secret in plain text: it becomes the variable ${name}.`);
    return writeReference("env", name);
  };
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, clean(value, [key])]));
}

function isSecret(key: string | number | undefined, value: string): boolean {
  const named = typeof key === "string" && (SECRET_KEYS.has(key) || looksLikeCredential(key));
  // `cluster.credentials` may also be the path of a file.
  if (named && isPlainText(value) && (key !== "credentials" || value.includes("-----BEGIN"))) return true;
  return partsOf(value).some((part) => typeof part === "string" && maskTokens(part) !== part);
}
