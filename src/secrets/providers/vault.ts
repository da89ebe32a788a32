/**
 * HashiCorp Vault by plain HTTP: `secret://vault/mount/path#field`, in the key-value engine of version 2, else of version 1.
 * Signed in by VAULT_TOKEN, by AppRole (VAULT_ROLE_ID, VAULT_SECRET_ID), or with the token that `vault login` left.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { SecretFailure, type ProviderContext, type SecretProvider } from "../provider.ts";
import { checkAddress } from "../safe-address.ts";
import { fieldOf } from "../secret-text.ts";
import { readSecretFile } from "./file.ts";
import { askVault, type VaultAnswer } from "./vault-http.ts";

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
      // A token that an AppRole login gave may have been revoked since.
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
  if (!isJsonObject(data)) throw new SecretFailure("was answered by Vault with something that is no secret");
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
  if (signal.aborted) return Promise.reject(new SecretFailure("was given up", { passing: true }));
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new SecretFailure("was given up", { passing: true }));
    signal.addEventListener("abort", giveUp, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
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
