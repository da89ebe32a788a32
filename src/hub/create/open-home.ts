/** State that outlives a hub: the store that the config names, and the secrets in it. */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { keyFile, keyFromText, SealedSecrets, type SealingKey } from "../../secrets/sealed-secrets.ts";
import { findReferences } from "../../secrets/secret-references.ts";
import { Secrets } from "../../secrets/secrets.ts";
import type { Store } from "../../store/store.ts";
import type { HubOptions } from "../hub-options.ts";

export interface HomeOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  readonly clock: Clock;
  readonly redactor: Redactor;
  readonly warn: (message: string) => void;
}

export interface HubHome {
  readonly secrets: Secrets;
  readonly store: Store | undefined;
  /** Those in the store; undefined without one. */
  readonly sealed: SealedSecrets | undefined;
  /** `close` follows: a database that does not answer no longer delays anything for long. */
  endSoon(): void;
  /** Closes the store if it was opened here; one that was given stays open. */
  close(): Promise<void>;
}

/** @param config Returns the current one. */
export async function openHome(
  config: () => LoadedConfig,
  wanted: HubOptions["store"],
  place: HomeOptions,
): Promise<HubHome> {
  const { env, home, clock, redactor } = place;
  const kept: { sealed?: SealedSecrets } = {};
  const secrets = new Secrets({ env, home, clock, redactor, ...config().config.secrets, sealed: () => kept.sealed });
  const { store, endSoon, close } = await openHubStore(config(), wanted, { ...place, secrets });
  if (store === undefined) return { secrets, store, sealed: undefined, endSoon, close };
  const key = (): SealingKey => sealingKey(config(), { home, secrets, store });
  const sealed = new SealedSecrets({
    values: store.sealed,
    clock,
    key: { existing: () => key().existing(), made: () => key().made() },
  });
  kept.sealed = sealed;
  return { secrets, store, sealed, endSoon, close };
}

function sealingKey(
  { config, baseDir }: LoadedConfig,
  { home, secrets, store }: { readonly home: string; readonly secrets: Secrets; readonly store: Store },
): SealingKey {
  const { key } = config.secrets;
  if (key === undefined) return keyFile(home);
  if (findReferences(key).some((each) => each.kind === "secret" && each.provider === "store")) {
    throw new ToolcribError(
      "invalid_config",
      "`secrets.key` is the key of the secrets in the store, and cannot be there.",
      {
        hint: "Keep it elsewhere: secret://env/NAME, secret://file/path or secret://keychain/….",
      },
    );
  }
  return keyFromText(
    async () => {
      const { value } = await secrets.resolve(key, { baseDir });
      secrets.redactor.addCredential(value);
      return value;
    },
    (name, value) => store.settings.setOnce(name, value),
  );
}

const NO_STORE = { store: undefined, endSoon: () => {}, close: async () => {} };

interface StorePlace extends Pick<HomeOptions, "home" | "clock" | "warn"> {
  readonly secrets: Secrets;
  /** Whether to go on without a store that cannot be read, because its folder cannot be written to, would be wrong. */
  readonly needsAll?: boolean;
}

/** The store alone, for what works on it without a hub. */
export async function openHubStore(
  config: LoadedConfig,
  wanted: HubOptions["store"],
  { home, clock, warn, secrets, needsAll = false }: StorePlace,
): Promise<Pick<HubHome, "store" | "endSoon" | "close">> {
  if (wanted === false) return NO_STORE;
  if (wanted !== undefined && wanted !== "existing") return { ...NO_STORE, store: wanted };
  const { store: named } = config.config;
  // A config given in code is complete: it reads and leaves nothing that it does not name.
  if (config.inCode && named === undefined) return NO_STORE;
  const url =
    named === undefined || named === "sqlite" ? undefined : await storeAddress(named, config.baseDir, secrets);
  // Loaded here: a hub without a store must not pay for a database.
  const { openStore } = await import("../../store/open-store.ts");
  const create = wanted !== "existing";
  if (config.file === null && named === undefined) {
    const other = await readStoreNote(home);
    if (other !== undefined) warn(withHint(otherStoreError(home, other)));
  }
  try {
    const store = await openStore({ home, clock, warn, create, url });
    if (store === undefined) return NO_STORE;
    if (create && config.file !== null) await writeStoreNote(home, store);
    return { store, endSoon: () => store.endSoon?.(), close: () => store.close() };
  } catch (error) {
    if (create || needsAll || url !== undefined || !isReadOnly(error)) throw error;
    const why = asToolcribError(error).message;
    warn(
      `${why} So what is kept in it is not seen: servers that were added, imported skills, pins, older audit records.`,
    );
    return NO_STORE;
  }
}

/** Whether it could be opened if it could be written to, too. */
function isReadOnly(error: unknown): boolean {
  const cause = error instanceof ToolcribError ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return /^(?:EACCES|EPERM|EROFS|SQLITE_READONLY.*|SQLITE_CANTOPEN.*|SQLITE_PERM)$/.test(code);
}

function withHint({ message, hint }: ToolcribError): string {
  return hint === undefined ? message : `${message} ${hint}`;
}

/** Of the database that `store` names; undefined for SQLite. */
export async function storeAddress(text: string, baseDir: string, secrets: Secrets): Promise<string | undefined> {
  const { value } = await secrets.resolve(text, { baseDir });
  if (value === "sqlite") return undefined;
  if (!/^postgres(?:ql)?:\/\/./i.test(value)) {
    throw new ToolcribError("invalid_config", '`store` is neither "sqlite" nor the address of a PostgreSQL database.', {
      hint: "Write postgres://user@host/database, with the password by reference.",
    });
  }
  for (const password of passwordsOf(value)) secrets.redactor.addCredential(password);
  return value;
}

/** As written in the address, and decoded. The address itself is what messages name the database by. */
function passwordsOf(address: string): string[] {
  const [, written = ""] = /^[a-z]+:\/\/[^:/?#@]*:([^/?#]*)@/i.exec(address) ?? [];
  const parsed = URL.canParse(address) ? new URL(address) : undefined;
  const meant = [written, parsed?.password ?? ""].map((text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  });
  const option = parsed?.searchParams.get("password") ?? "";
  return [...new Set([written, ...meant, option])].filter((text) => text !== "");
}

/**
 * `store.json` names the database outside the home that the home was last used with. Without the config that names it, the
 * home's own database would be taken for it, and everything would seem to be gone.
 */
export function storeNoteFile(home: string): string {
  return join(home, "store.json");
}

/** The address without its password; undefined if it was the home's own. */
export async function readStoreNote(home: string): Promise<string | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(storeNoteFile(home), "utf8"));
    return isJsonObject(value) && typeof value["place"] === "string" ? value["place"] : undefined;
  } catch {
    return undefined;
  }
}

/** A home that cannot be written to has no note; nothing else depends on it. */
export async function writeStoreNote(home: string, { kind, place }: Pick<Store, "kind" | "place">): Promise<void> {
  const noted = await readStoreNote(home);
  if (kind === "sqlite") {
    if (noted !== undefined) await rm(storeNoteFile(home), { force: true }).catch(() => {});
  } else if (noted !== place) {
    await writeAtomic(storeNoteFile(home), `${JSON.stringify({ kind, place })}\n`, { mode: 0o600 }).catch(() => {});
  }
}

export function otherStoreError(home: string, place: string): ToolcribError {
  return new ToolcribError(
    "invalid_config",
    `${home} was last used with the store ${place}, and there is no config here that names it.`,
    { hint: `Give the config with --config. If that store is not used any more, remove ${storeNoteFile(home)}.` },
  );
}
