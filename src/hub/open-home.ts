/** What a hub keeps beyond its own life: the store that the config names, and the secrets in it. */
import type { LoadedConfig } from "../config/load-config.ts";
import type { Clock } from "../model/clock.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import type { Redactor } from "../secrets/redactor.ts";
import { findReferences } from "../secrets/references.ts";
import { SealedSecrets } from "../secrets/sealed/sealed-secrets.ts";
import { keyFile, keyFromText, type SealingKey } from "../secrets/sealed/sealing-key.ts";
import { Secrets } from "../secrets/secrets.ts";
import type { Store } from "../store/store.ts";
import type { HubOptions } from "./hub-options.ts";
import { notedStore, noteStore, otherStore } from "./store-note.ts";

export interface HomePlace {
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
  /** What is closed below will be: a database that does not answer keeps nobody waiting for long. */
  endSoon(): void;
  /** Closes the store if it was opened here; one that was given stays open. */
  close(): Promise<void>;
}

/** @param config The one that holds, whenever it is asked for. */
export async function openHome(
  config: () => LoadedConfig,
  wanted: HubOptions["store"],
  place: HomePlace,
): Promise<HubHome> {
  const { env, home, clock, redactor } = place;
  const kept: { sealed?: SealedSecrets } = {};
  const secrets = new Secrets({ env, home, clock, redactor, ...config().config.secrets, sealed: () => kept.sealed });
  const { store, endSoon, close } = await openHubStore(config(), wanted, { ...place, secrets });
  if (store === undefined) return { secrets, store, sealed: undefined, endSoon, close };
  const key = (): SealingKey => sealingKey(config(), { home, secrets, store });
  const sealed = new SealedSecrets({
    shelf: store.sealed,
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

const NONE = { store: undefined, endSoon: () => {}, close: async () => {} };

interface StorePlace extends Pick<HomePlace, "home" | "clock" | "warn"> {
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
  if (wanted === false) return NONE;
  if (wanted !== undefined && wanted !== "existing") return { ...NONE, store: wanted };
  const { store: named } = config.config;
  // A config given in code is complete: it reads and leaves nothing that it does not name.
  if (config.inCode && named === undefined) return NONE;
  const url = named === undefined || named === "sqlite" ? undefined : await addressOf(named, config.baseDir, secrets);
  // Loaded here: a hub without a store must not pay for a database.
  const { openStore } = await import("../store/open-store.ts");
  const create = wanted !== "existing";
  if (config.file === null && named === undefined) {
    const other = await notedStore(home);
    if (other !== undefined) warn(textOf(otherStore(home, other)));
  }
  try {
    const store = await openStore({ home, clock, warn, create, url });
    if (store === undefined) return NONE;
    if (create && config.file !== null) await noteStore(home, store);
    return { store, endSoon: () => store.endSoon?.(), close: () => store.close() };
  } catch (error) {
    if (create || needsAll || url !== undefined || !isReadOnly(error)) throw error;
    const why = asToolcribError(error).message;
    warn(
      `${why} So what is kept in it is not seen: servers that were added, imported skills, pins, older audit records.`,
    );
    return NONE;
  }
}

/** Whether it could be opened if it could be written to, too. */
function isReadOnly(error: unknown): boolean {
  const cause = error instanceof ToolcribError ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return /^(?:EACCES|EPERM|EROFS|SQLITE_READONLY.*|SQLITE_CANTOPEN.*|SQLITE_PERM)$/.test(code);
}

function textOf({ message, hint }: ToolcribError): string {
  return hint === undefined ? message : `${message} ${hint}`;
}

/** Of the database that `store` names; undefined for SQLite. */
export async function addressOf(text: string, baseDir: string, secrets: Secrets): Promise<string | undefined> {
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

/** As it stands in the address, and as it is meant. The address itself is what messages name the database by. */
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
