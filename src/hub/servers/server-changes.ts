/** Adding, changing and removing servers while the hub runs: written down first, then taken up like a changed config. */
import { isDeepStrictEqual } from "node:util";
import type { LoadedConfig } from "../../config/load-config.ts";
import { lineOfServer } from "../../config/server-line.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { StoredServer } from "../../store/store.ts";
import { type AddedServers, FROM_API, STORE_DIALECT } from "./added-servers.ts";
import { etagOf, matchesEtag } from "./etag.ts";
import type { ServerSecrets } from "./server-secrets.ts";
import { mergeEntry } from "./merge-entry.ts";
import { refuseMask } from "./refuse-mask.ts";

/** What was written, if it cannot be taken up, and what is to be done when it was. */
export interface Written {
  undo(): Promise<void>;
  done?(): Promise<void>;
}

export interface ServerChangesOptions {
  readonly added: AddedServers;
  readonly kept: ServerSecrets;
  readonly config: () => LoadedConfig;
  /** Runs `write` in turn with reloads and takes up what it wrote; undefined for nothing to take up. */
  readonly change: (write: () => Promise<Written | undefined>) => Promise<void>;
}

export interface ChangeOptions {
  /** Only if the entry still has this tag. */
  readonly ifMatch?: string;
}

export class ServerChanges {
  readonly #options: ServerChangesOptions;

  constructor(options: ServerChangesOptions) {
    this.#options = options;
  }

  /** Gives what is odd about the entry. */
  async add(id: string, given: JsonObject): Promise<string[]> {
    refuseMask(given);
    const { added, kept, config, change } = this.#options;
    let odd: string[] = [];
    await change(async () => {
      await this.#refuseTaken(id);
      const { servers, config: settings } = config();
      if (servers.length >= settings.limits.servers) {
        throw new ToolcribError(
          "conflict",
          `There are ${servers.length} servers, as many as \`limits.servers\` allows.`,
          {
            hint: "Remove one, or raise the limit in the config.",
            details: { limit: settings.limits.servers },
          },
        );
      }
      const read = added.check(id, given);
      const { entry, undo } = await kept.secure(id, read.entry);
      await added.stored.insert({ id, entry, source: FROM_API }).catch(async (error: unknown) => {
        await undo();
        throw error;
      });
      odd = added.tellOf(read);
      return {
        async undo() {
          await added.stored.remove(id);
          await undo();
        },
      };
    });
    return odd;
  }

  /** Gives what is odd about the entry. */
  async update(id: string, updates: JsonObject, { ifMatch }: ChangeOptions = {}): Promise<string[]> {
    refuseMask(updates);
    const { added, kept, change } = this.#options;
    let odd: string[] = [];
    await change(async () => {
      const before = await this.#editable(id, ifMatch);
      if (updates["id"] !== undefined && updates["id"] !== id) {
        throw new ToolcribError("invalid_arguments", "The id of a server cannot be changed.", {
          hint: "Add it under the other id, and remove this one.",
        });
      }
      const read = added.check(id, mergeEntry(before.entry, updates), before);
      odd = added.tellOf(read);
      if (isDeepStrictEqual(read.entry, before.entry)) return undefined;
      const { entry, undo } = await kept.secure(id, read.entry);
      await added.stored.update(id, entry, before.revision).catch(async (error: unknown) => {
        await undo();
        throw error;
      });
      return {
        async undo() {
          await added.stored.update(id, before.entry);
          await undo();
        },
        done: async () => kept.release(before.entry, await this.#texts()),
      };
    });
    return odd;
  }

  async remove(id: string, { ifMatch }: ChangeOptions = {}): Promise<void> {
    const { added, kept, change } = this.#options;
    await change(async () => {
      const before = await this.#editable(id, ifMatch);
      await added.stored.remove(id, before.revision);
      return {
        async undo() {
          await added.stored.insert(before);
        },
        done: async () => kept.release(before.entry, await this.#texts()),
      };
    });
  }

  async #refuseTaken(id: string): Promise<void> {
    const spec = this.#options.config().servers.find((each) => each.id === id);
    const isTaken = spec !== undefined || (await this.#options.added.stored.get(id)) !== undefined;
    if (!isTaken) return;
    throw new ToolcribError("conflict", `There is a server "${id}" already.`, {
      hint: "Choose another id, or change that server.",
      details: { id, ...(spec === undefined ? {} : { file: spec.origin.file }) },
    });
  }

  async #editable(id: string, ifMatch: string | undefined): Promise<StoredServer> {
    const { added, config } = this.#options;
    const origin = config().servers.find((each) => each.id === id)?.origin;
    if (origin !== undefined && origin.dialect !== STORE_DIALECT) throw await writtenElsewhere(id, origin.file);
    const stored = await added.stored.get(id);
    if (stored === undefined) {
      throw new ToolcribError("not_found", `There is no server "${id}".`, {
        hint: "List the servers to see their ids.",
      });
    }
    const actual = etagOf(stored.entry, stored.revision);
    if (ifMatch !== undefined && !matchesEtag(ifMatch, actual)) {
      throw new ToolcribError("conflict", `The server "${id}" was changed meanwhile.`, {
        hint: "Read it again, and change what you find.",
        details: { expected: ifMatch, actual },
      });
    }
    return stored;
  }

  /** Everything that may refer to a secret. */
  async #texts(): Promise<string> {
    const { added, config } = this.#options;
    const { config: settings, servers } = config();
    return JSON.stringify([settings, servers, await added.stored.list()]);
  }
}

async function writtenElsewhere(id: string, file: string): Promise<ToolcribError> {
  const line = await lineOfServer(file, id);
  const place = line === undefined ? file : `${file}:${line}`;
  return new ToolcribError("conflict", `The server "${id}" is written in ${file}, and changed only there.`, {
    hint: `Change it at ${place}. Connecting and disconnecting work here too.`,
    details: { id, file, line },
  });
}
