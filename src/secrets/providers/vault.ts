/**
 * HashiCorp Vault by plain HTTP: `secret://vault/mount/path#field`, in the key-value engine of version 2, else of version 1.
 * Signed in by VAULT_TOKEN, by AppRole (VAULT_ROLE_ID, VAULT_SECRET_ID), or with the token that `vault login` left.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { withAbort } from "../../base/async.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../model/json.ts";
import { checkAddress, fieldOf, type ProviderContext, SecretFailure, type SecretProvider } from "../provider.ts";
import { readSecretFile } from "./local.ts";
import { readBytes } from "../../base/read-bytes.ts";

interface Login {
  readonly token: Promise<string>;
  readonly until: number;
}

/** A token of an AppRole is used for at most this long; less if its lease is shorter. */
const LOGIN_MS = 60_000;
const LOGIN_TIMEOUT_MS = 10_000;

export function vaultProvider(): SecretProvider {
  const logins = new Map<string, Login>();
  return {
    name: "vault",
    cached: true,
    async resolve({ path, field }, context) {
      const address = addressOf(context.env);
      const slash = path.indexOf("/");
      const [mount, name] = [path.slice(0, slash), path.slice(slash + 1)];
      const read = async (fresh: boolean): Promise<VaultAnswer> => {
        const token = await tokenFor(address, context, logins, fresh);
        return readSecret(address, mount, name, token, context);
      };
      let answer = await read(false);
      // The token of an AppRole login may have been revoked since.
      if (answer.status === 403 && usesAppRole(context.env)) answer = await read(true);
      if (answer.status !== 200) throw refusal(answer, "the secret");
      const value = fieldOf(fieldsOf(answer), field);
      if (value === "") throw new SecretFailure("is empty");
      return value;
    },
  };
}

function addressOf(env: NodeJS.ProcessEnv): URL {
  const text = env["VAULT_ADDR"];
  if (text === undefined || text === "") {
    throw new SecretFailure("needs the address of Vault", {
      hint: "Set VAULT_ADDR, such as https://vault.example.com:8200.",
    });
  }
  return checkAddress(text, "VAULT_ADDR");
}

/** Version 2 first. A path of version 1 is not found there, or not allowed by a policy that knows nothing of `data/`. */
async function readSecret(
  address: URL,
  mount: string,
  name: string,
  token: string,
  context: ProviderContext,
): Promise<VaultAnswer> {
  const ask = (path: string): Promise<VaultAnswer> =>
    askVault(address, path, { token, namespace: context.env["VAULT_NAMESPACE"], signal: context.signal });
  const second = await ask(`${mount}/data/${name}`);
  const isElsewhere = second.status === 403 || (second.status === 404 && !("data" in second.body));
  if (!isElsewhere) return second;
  const first = await ask(`${mount}/${name}`);
  return first.status === 200 ? first : second;
}

function fieldsOf({ body }: VaultAnswer): JsonObject {
  const data = body["data"];
  if (!isJsonObject(data)) throw new SecretFailure("was answered by Vault with something that is not a secret");
  // Also where a path was written with its `data/` and read as one of version 1.
  if (!("metadata" in data) || !("data" in data)) return data;
  if (isJsonObject(data["data"])) return data["data"];
  throw new SecretFailure("was deleted");
}

function usesAppRole(env: NodeJS.ProcessEnv): boolean {
  return !env["VAULT_TOKEN"] && Boolean(env["VAULT_ROLE_ID"]);
}

async function tokenFor(
  address: URL,
  context: ProviderContext,
  logins: Map<string, Login>,
  fresh: boolean,
): Promise<string> {
  const { env, clock } = context;
  const given = env["VAULT_TOKEN"];
  if (given) {
    context.conceal(given);
    return given;
  }
  if (usesAppRole(env)) {
    const key = JSON.stringify([address.href, env["VAULT_NAMESPACE"], env["VAULT_ROLE_ID"]]);
    const known = logins.get(key);
    if (known !== undefined && !fresh && known.until > clock.now()) return waitFor(known.token, context.signal);
    const login = { token: logIn(address, context), until: clock.now() + LOGIN_MS };
    logins.set(key, login);
    login.token.catch(() => logins.delete(key));
    return waitFor(login.token, context.signal);
  }
  const left = await readSecretFile(join(env["HOME"] || homedir(), ".vault-token"), context.warn);
  if (left !== undefined) {
    context.conceal(left);
    return left;
  }
  throw new SecretFailure("needs a sign-in to Vault", {
    hint: "Set VAULT_TOKEN, or VAULT_ROLE_ID and VAULT_SECRET_ID, or run `vault login`.",
  });
}

/** Not ended by the signal of the one that asked first: others may wait for the same login. */
async function logIn(address: URL, { env, conceal }: ProviderContext): Promise<string> {
  const [role, secret] = [env["VAULT_ROLE_ID"] ?? "", env["VAULT_SECRET_ID"]];
  conceal(role);
  if (secret) conceal(secret);
  const answer = await askVault(address, "auth/approle/login", {
    namespace: env["VAULT_NAMESPACE"],
    signal: AbortSignal.timeout(LOGIN_TIMEOUT_MS),
    body: { role_id: role, ...(secret ? { secret_id: secret } : {}) },
  });
  if (answer.status !== 200) throw refusal(answer, "the sign-in with AppRole");
  const auth = answer.body["auth"];
  const token = isJsonObject(auth) ? auth["client_token"] : undefined;
  if (typeof token !== "string" || token === "")
    throw new SecretFailure("was not given: Vault's sign-in answer has no token");
  conceal(token);
  return token;
}

function waitFor<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return withAbort(promise, signal, () => new SecretFailure("was given up", { passing: true }));
}

function refusal({ status, body }: VaultAnswer, what: string): SecretFailure {
  const errors = Array.isArray(body["errors"]) ? body["errors"].filter((each) => typeof each === "string") : [];
  const said = errors.length === 0 ? "" : `: ${errors.join("; ").slice(0, 200)}`;
  if (status === 404) return new SecretFailure(`is not in Vault (404)${said}`, { hint: "Check mount and path." });
  if (status === 400 || status === 401 || status === 403) {
    const hint = "Check the token or role, its policy, and VAULT_NAMESPACE.";
    return new SecretFailure(`is refused by Vault: ${what} answered ${status}${said}`, { hint });
  }
  return new SecretFailure(`was not given: Vault answered ${status}${said}`, { passing: status >= 429 });
}

interface Question {
  readonly token?: string;
  readonly namespace: string | undefined;
  readonly signal: AbortSignal;
  /** Posted; without it the question is a GET. */
  readonly body?: JsonObject;
}

interface VaultAnswer {
  readonly status: number;
  /** Empty if the answer was not a JSON object and the status says enough. */
  readonly body: JsonObject;
}

const MAX_RESPONSE_BYTES = 1024 * 1024;
const REDIRECTS = new Set([301, 302, 307, 308]);

/** One question to Vault over HTTP, bounded in size and time. */
async function askVault(address: URL, path: string, question: Question): Promise<VaultAnswer> {
  const url = new URL(address);
  url.pathname = `${address.pathname.replace(/\/$/, "")}/v1/${path.toWellFormed().split("/").map(encodeURIComponent).join("/")}`;
  const response = await sendToVault(url, question);
  if (!REDIRECTS.has(response.status)) return readAnswer(response);
  // A standby node names the active one. One step only, and never from https to plain http elsewhere: the token goes along.
  await response.body?.cancel();
  const next = new URL(response.headers.get("location") ?? "", url);
  if (url.protocol === "https:" && next.protocol !== "https:")
    throw new SecretFailure("was not given: Vault redirects to plain http");
  return readAnswer(await sendToVault(checkAddress(next.href, "the address that Vault redirects to"), question));
}

async function sendToVault(url: URL, { token, namespace, signal, body }: Question): Promise<Response> {
  const headers: Record<string, string> = { "X-Vault-Request": "true", Accept: "application/json" };
  if (token !== undefined) headers["X-Vault-Token"] = token;
  if (namespace) headers["X-Vault-Namespace"] = namespace;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers,
      signal,
      redirect: "manual",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    throw unreachable(url, error);
  }
}

async function readAnswer(response: Response): Promise<VaultAnswer> {
  const { status } = response;
  const tooLarge = (): Error => new SecretFailure("was not given: Vault's answer is larger than 1 MiB");
  // The types of the web platform do not know that this stream can be iterated over.
  const stream = (response.body ?? []) as AsyncIterable<Uint8Array>;
  const bytes = await readBytes(stream, MAX_RESPONSE_BYTES, tooLarge).catch((error: unknown) => {
    if (error instanceof SecretFailure) throw error;
    throw new SecretFailure("was not given: Vault's answer broke off", { passing: true, cause: error });
  });
  const body = parseJsonObject(new TextDecoder().decode(bytes));
  if (body !== undefined || status !== 200) return { status, body: body ?? {} };
  throw new SecretFailure("was not given: Vault answered something that is not a JSON object");
}

/** The system's own word, such as ECONNREFUSED: the rest of such messages varies. */
function unreachable(url: URL, error: unknown): SecretFailure {
  const cause = error instanceof Error ? error.cause : undefined;
  const code =
    cause instanceof Error && "code" in cause ? String(cause.code) : error instanceof Error ? error.name : "unknown";
  // A header that cannot be sent, such as a token with a line break, is not a network failure.
  const passing = cause !== undefined || code === "AbortError" || code === "TimeoutError";
  return new SecretFailure(`was not given: Vault at ${url.host} cannot be reached (${code})`, {
    passing,
    cause: error,
  });
}
