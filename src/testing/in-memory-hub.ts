import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHub, type HubOptions } from "../hub/create/create-hub.ts";
import type { Hub } from "../hub/hub.ts";
import type { ConfigInput } from "../model/config.ts";

export interface InMemoryHub extends AsyncDisposable {
  readonly hub: Hub;
  /** The folder that it keeps its files in. */
  readonly home: string;
  /** Closes the hub and removes its home. */
  close(): Promise<void>;
}

/**
 * A hub that reads nothing of this computer's and leaves nothing behind: config in code, a home for the time being, no
 * store. It waits for its servers as long as they take.
 *
 * @example
 * await using server = await startFakeServer({ tools: { echo: (args) => String(args["text"]) } });
 * await using there = await inMemoryHub({ mcpServers: { fake: { url: server.url } } });
 * await there.hub.call(there.hub.session, { name: "fake__echo", arguments: { text: "hi" } });
 */
export async function inMemoryHub(config: ConfigInput = {}, options: HubOptions = {}): Promise<InMemoryHub> {
  const home = await mkdtemp(join(tmpdir(), "toolcrib-hub-"));
  const remove = () => rm(home, { recursive: true, force: true });
  const hub = await createHub(config, { store: false, wait: true, ...options, home }).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const close = async (): Promise<void> => {
    await hub.close();
    await remove();
  };
  return { hub, home, close, [Symbol.asyncDispose]: close };
}
