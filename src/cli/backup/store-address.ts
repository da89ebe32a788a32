/** The address of the PostgreSQL store that the config names, with its references resolved; undefined for SQLite. */
import { toolcribHome } from "../../config/find-config.ts";
import { addressOf } from "../../hub/open-home.ts";
import { Secrets } from "../../secrets/secrets.ts";
import type { Invocation } from "../command.ts";
import { loadForStore } from "../load-asked.ts";

export async function storeAddress(invocation: Invocation): Promise<string | undefined> {
  const config = await loadForStore(invocation);
  const { store, secrets } = config.config;
  if (store === undefined || store === "sqlite") return undefined;
  const { env, out } = invocation;
  const lookup = new Secrets({ env, home: toolcribHome(env), redactor: out.redactor, ...secrets });
  return addressOf(store, config.baseDir, lookup);
}
