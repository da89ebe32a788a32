/** Pins of two configs at once: a project's lock file speaks for the project's servers, and the home's for all others. */
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { PinTable } from "./pin-file.ts";
import type { PinStorage, ReadPins, UpdatedPins } from "./pin-storage.ts";

/** Which servers are the project's. */
type Chooses = (server: string) => boolean;

export interface ProjectPins {
  readonly storage: PinStorage;
  readonly servers: readonly string[];
  /** Called when the project's pins cannot be used or written. The home's still apply. */
  readonly onProblem: (problem: ToolcribError) => void;
}

/** The file is the home's. What a file says of a server that is not its own is kept in it, and not heard. */
export function splitPins(home: PinStorage, { storage: project, servers, onProblem }: ProjectPins): PinStorage {
  const ids = new Set(servers);
  const isProjects: Chooses = (server) => ids.has(server);
  const ofHome = new Part(home, (server) => !ids.has(server));
  const ofProject = new Part(project, isProjects);
  return {
    file: home.file,
    fileOf: (server) => (isProjects(server) ? project : home).file,
    problemOf: (server) => (isProjects(server) ? ofProject.problem : undefined),
    part: partName(project.file, servers),
    unwritten: project.unwritten,
    hasChanged: () => home.hasChanged() || project.hasChanged(),
    async read() {
      const atHome = await ofHome.read();
      const inProject = await ofProject.read().catch((error: unknown): ReadPins => {
        onProblem(asToolcribError(error));
        return { pins: ofProject.known, isRestored: false };
      });
      const before = joined(atHome.before ?? atHome.pins, inProject.before ?? inProject.pins);
      return {
        pins: joined(atHome.pins, inProject.pins),
        ...(atHome.before === undefined && inProject.before === undefined ? {} : { before: before ?? new Map() }),
        isRestored: atHome.isRestored || inProject.isRestored,
      };
    },
    async update(change, isNeeded = () => false) {
      // The project's first: where they are needed and cannot be written, the home's stay as they are.
      const inProject = await ofProject.update(change).catch((thrown: unknown): UpdatedPins => {
        const error = asToolcribError(thrown);
        if (servers.some(isNeeded)) throw error;
        onProblem(error);
        return { pins: ofProject.known ?? new Map(), isRestored: false, failed: { isOf: isProjects, error } };
      });
      const atHome = await ofHome.update(change);
      return {
        pins: new Map([...atHome.pins, ...inProject.pins]),
        isRestored: atHome.isRestored || inProject.isRestored,
        failed: inProject.failed,
      };
    },
    follow(onChange) {
      for (const storage of [home, project]) storage.follow(onChange);
    },
    close() {
      for (const storage of [home, project]) storage.close();
    },
  };
}

export function partName(file: string, servers: readonly string[]): string {
  return JSON.stringify([file, servers.toSorted()]);
}

class Part {
  readonly #storage: PinStorage;
  readonly #isOwn: Chooses;
  /** Of its own servers, as last read or written: a file that is gone forgets nothing. */
  #known: PinTable = new Map();
  #problem: ToolcribError | undefined;

  constructor(storage: PinStorage, isOwn: Chooses) {
    this.#storage = storage;
    this.#isOwn = isOwn;
  }

  /** undefined where nothing was ever read or written. */
  get known(): PinTable | undefined {
    return this.#known.size === 0 ? undefined : this.#known;
  }

  /** Why what is there cannot be used. One that is removed then is no repair, unless something is known of it. */
  get problem(): ToolcribError | undefined {
    return this.#problem;
  }

  async read(): Promise<ReadPins> {
    const { pins, before, isRestored } = await this.#storage.read().catch((error: unknown) => {
      this.#problem = asToolcribError(error);
      throw error;
    });
    if (pins === undefined) {
      return this.#known.size === 0 ? { pins, isRestored } : this.update((known) => known ?? new Map());
    }
    this.#take(pins);
    return { pins: this.#known, ...(before === undefined ? {} : { before: this.#own(before) }), isRestored };
  }

  async update(change: (pins: PinTable | undefined) => PinTable): Promise<UpdatedPins> {
    let wasThere = false;
    const { pins, isRestored } = await this.#storage
      .update((found) => {
        wasThere = found !== undefined;
        const others = [...(found ?? [])].filter(([server]) => !this.#isOwn(server));
        return new Map([...others, ...this.#own(change(found === undefined ? this.#known : this.#own(found)))]);
      })
      .catch((error: unknown) => {
        // Of one that cannot be written everything that was read still applies.
        if (error instanceof ToolcribError && error.code === "invalid_config") this.#problem = error;
        throw error;
      });
    if (wasThere || this.#own(pins).size > 0) this.#take(pins);
    return { pins: this.#own(pins), isRestored };
  }

  #take(pins: PinTable): void {
    this.#known = this.#own(pins);
    this.#problem = undefined;
  }

  #own(pins: PinTable): PinTable {
    return new Map([...pins].filter(([server]) => this.#isOwn(server)));
  }
}

/** undefined where neither has anything. */
function joined(home: PinTable | undefined, project: PinTable | undefined): PinTable | undefined {
  return home === undefined && project === undefined ? undefined : new Map([...(home ?? []), ...(project ?? [])]);
}
