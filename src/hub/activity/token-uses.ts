/** The tokens of the config, and when they were last used, which is kept in the store to the minute. */
import type { Clock } from "../../base/clock.ts";
import type { TokenInfo } from "../../contract/change-schemas.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Store } from "../../store/store.ts";

const MINUTE_MS = 60_000;
const keyOf = (name: string): string => `token.used.${name}`;

/** Notes the use of a token. The store is written at most once a minute for each. */
export function tokenUses(store: Store | undefined, clock: Clock): (name: string) => void {
  const noted = new Map<string, number>();
  return (name) => {
    const minute = Math.floor(clock.now() / MINUTE_MS) * MINUTE_MS;
    if (store === undefined || noted.get(name) === minute) return;
    noted.set(name, minute);
    // A store that is away must not keep anyone out; the next minute tries again.
    store.settings.set(keyOf(name), new Date(minute).toISOString()).catch(() => {});
  };
}

/** Never their text. */
export async function listTokens({ config }: LoadedConfig, store: Store | undefined): Promise<TokenInfo[]> {
  const listed = (config.http.auth?.tokens ?? []).map(async (token): Promise<TokenInfo> => {
    const { name = null, user = null, role = null, scopes, created = null, sha256 } = token;
    const lastUsed = name === null ? null : ((await store?.settings.get(keyOf(name))) ?? null);
    return { name, user, role, scopes, created, stored: sha256 === undefined ? "reference" : "digest", lastUsed };
  });
  return Promise.all(listed);
}
