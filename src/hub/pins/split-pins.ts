/** Pins of two configs at once: a project's lock file speaks for the project's servers, and the home's for all others. */
import { asToolcribError, type ToolcribError } from "../../model/errors.ts";
import type { PinTable } from "./pin-file.ts";
import type { PinStorage, ReadPins } from "./pin-storage.ts";

/** Which servers are the project's. */
type Chooses = (server: string) => boolean;

export interface ProjectPins {
  readonly storage: PinStorage;
  readonly servers: readonly string[];
  /** Told when the project's pins cannot be used. The home's hold on. */
  readonly onProblem: (problem: ToolcribError) => void;
}

/** The file is the home's. What a file says of a server that is not its own is kept in it, and not heard. */
export function splitPins(home: PinStorage, { storage: project, servers, onProblem }: ProjectPins): PinStorage {
  const ids = new Set(servers);
  const parts = [
    new Part(home, (server) => !ids.has(server)),
    new Part(project, (server) => ids.has(server), onProblem),
  ] as const;
  return {
    file: home.file,
    part: partName(project.file, servers),
    unwritten: project.unwritten,
    hasChanged: () => parts.some(({ storage }) => storage.hasChanged()),
    async read() {
      const [ofHome, ofProject] = [await parts[0].read(), await parts[1].read()];
      const before = joined(ofHome.before ?? ofHome.pins, ofProject.before ?? ofProject.pins);
      return {
        pins: joined(ofHome.pins, ofProject.pins),
        ...(ofHome.before === undefined && ofProject.before === undefined ? {} : { before: before ?? new Map() }),
        isRestored: ofHome.isRestored || ofProject.isRestored,
      };
    },
    async update(change) {
      const [ofHome, ofProject] = [await parts[0].update(change), await parts[1].update(change)];
      return {
        pins: new Map([...ofHome.pins, ...ofProject.pins]),
        isRestored: ofHome.isRestored || ofProject.isRestored,
      };
    },
    follow(onChange) {
      for (const { storage } of parts) storage.follow(onChange);
    },
    close() {
      for (const { storage } of parts) storage.close();
    },
  };
}

export function partName(file: string, servers: readonly string[]): string {
  return JSON.stringify([file, servers.toSorted()]);
}

class Part {
  readonly storage: PinStorage;
  readonly #isOwn: Chooses;
  readonly #onProblem: ((problem: ToolcribError) => void) | undefined;
  /** Of its own servers, as last read or written: a file that is gone forgets nothing. */
  #known: PinTable = new Map();

  /** @param onProblem Without it what goes wrong is thrown. */
  constructor(storage: PinStorage, isOwn: Chooses, onProblem?: (problem: ToolcribError) => void) {
    this.storage = storage;
    this.#isOwn = isOwn;
    this.#onProblem = onProblem;
  }

  async read(): Promise<ReadPins> {
    try {
      const { pins, before, isRestored } = await this.storage.read();
      if (pins === undefined && this.#known.size > 0) return await this.update((known) => known ?? new Map());
      if (pins !== undefined) this.#known = this.#own(pins);
      const own = before === undefined ? {} : { before: this.#own(before) };
      return { pins: pins && this.#own(pins), ...own, isRestored };
    } catch (error) {
      this.#report(error);
      return { pins: this.#known.size === 0 ? undefined : this.#known, isRestored: false };
    }
  }

  async update(
    change: (pins: PinTable | undefined) => PinTable,
  ): Promise<{ readonly pins: PinTable; readonly isRestored: boolean }> {
    const changed = (found: PinTable | undefined): PinTable =>
      this.#own(change(found === undefined ? this.#known : this.#own(found)));
    try {
      const { pins, isRestored } = await this.storage.update((found) => {
        const others = [...(found ?? [])].filter(([server]) => !this.#isOwn(server));
        return new Map([...others, ...changed(found)]);
      });
      this.#known = this.#own(pins);
      return { pins: this.#known, isRestored };
    } catch (error) {
      this.#report(error);
      this.#known = changed(undefined);
      return { pins: this.#known, isRestored: false };
    }
  }

  #own(pins: PinTable): PinTable {
    return new Map([...pins].filter(([server]) => this.#isOwn(server)));
  }

  #report(error: unknown): void {
    if (this.#onProblem === undefined) throw error;
    this.#onProblem(asToolcribError(error));
  }
}

/** undefined where neither has anything. */
function joined(home: PinTable | undefined, project: PinTable | undefined): PinTable | undefined {
  return home === undefined && project === undefined ? undefined : new Map([...(home ?? []), ...(project ?? [])]);
}
