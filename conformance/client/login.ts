/** Logs in as a person would who is told to, and whose browser goes where it is sent. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import type { OAuthSettings } from "../../src/model/server-spec.ts";
import { GrantStore } from "../../src/secrets/oauth/grants.ts";
import { login } from "../../src/secrets/oauth/browser-login.ts";
import { Redactor } from "../../src/secrets/redactor.ts";

export interface Account {
  readonly server: string;
  readonly url: string;
  readonly settings: OAuthSettings;
  readonly home: string;
}

export async function logIn({ server, url, settings, home }: Account): Promise<void> {
  await login({
    key: { server, url, user: undefined },
    settings,
    sharedWith: [],
    store: new GrantStore(join(home, "auth")),
    clock: systemClock,
    redactor: new Redactor(),
    onAuthorize: (address) => void browse(address).catch((error: unknown) => console.error(String(error))),
    timeoutMs: 10_000,
  });
}

async function browse(address: URL): Promise<void> {
  const [response] = (await once(get(address), "response")) as [IncomingMessage];
  response.resume();
  const next = response.headers.location;
  if (next !== undefined) await browse(new URL(next, address));
}
