/** Where the pins of a config are, and how they are opened. */
import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { realTarget } from "../../files/write-atomic.ts";
import { pinKey, type PinMode } from "./pin-comparison.ts";
import { clusterOf } from "../../model/config.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Store, StoredPin } from "../../store/store.ts";
import {
  allPins,
  isSamePin,
  isSameTable,
  isSharedPinFile,
  parsePin,
  type PinDocument,
  pinFileFor,
  pinFileStamp,
  pinsInFile,
  type PinStorage,
  type PinTable,
  readPinFile,
  type ReadPins,
  type ServerPin,
  type UpdatedPins,
  withPins,
  writePinFile,
} from "./pin-file.ts";
import { Pins, type PinsOptions } from "./pins.ts";

interface PinLocation {
  readonly file: string;
  /** Their scope in a store; the path of the file if absent. */
  readonly scope?: string;
  readonly mode: PinMode;
  /** Whether nodes with lock files of their own share them: then a file only adds unknown pins. */
  readonly ofCluster?: boolean;
  /** Says on this node that there was a lock file. */
  readonly trace?: string;
  /** The lock file of a project config, and the servers that it speaks for. */
  readonly project?: { readonly file: string; readonly servers: readonly string[] };
}

export function pinLocation({ file, config, project, servers }: LoadedConfig, home: string): PinLocation {
  const lock = pinFileFor(file, home);
  const cluster = clusterOf(config.cluster);
  return {
    file: lock,
    // The path of the config may differ between nodes.
    ...(cluster === undefined
      ? { scope: pinScope(lock) }
      : { scope: `cluster/${cluster.name}`, ofCluster: true, trace: tracePath(lock, home) }),
    // A config in code has no file beside which the pins could be; several programs would share one by accident.
    mode: config.guard.pins ?? (file === null && project === undefined ? "off" : "warn"),
    ...(project === undefined
      ? {}
      : { project: { file: pinFileFor(project.file, home), servers: projectServers(servers) } }),
  };
}

function projectServers(servers: LoadedConfig["servers"]): string[] {
  return servers.filter(({ fromProject }) => fromProject === true).map(({ id }) => id);
}

/** The `part` of the pins at this location. */
export function partOf({ project }: PinLocation): string | undefined {
  return project && partKey(project.file, project.servers);
}

interface OpenPinsOptions extends Pick<PinsOptions, "clock" | "onEvent" | "pinsResources" | "mask"> {
  /** Without one they are in the file alone. */
  readonly store: Pick<Store, "pins" | "place" | "follow"> | undefined;
}

function tracePath(lock: string, home: string): string {
  const id = createHash("sha256").update(lock).digest("hex").slice(0, 12);
  return join(home, "cluster", `${id}.had-lock`);
}

/** The same whatever way leads to the file. What is in the home goes with it, wherever it is moved or brought back. */
function pinScope(file: string): string {
  if (!isSharedPinFile(file)) return `locks/${basename(file, ".lock")}`;
  try {
    return join(realpathSync(dirname(file)), basename(file));
  } catch {
    return file;
  }
}

export function openPins(place: PinLocation, { store, ...options }: OpenPinsOptions): Promise<Pins> {
  return Pins.open({ ...options, mode: place.mode, storage: storageOf(place, store, options.onEvent) });
}

function storageOf(
  { project, ...place }: PinLocation,
  store: OpenPinsOptions["store"],
  onEvent: PinsOptions["onEvent"] = () => {},
): PinStorage {
  const storage = storageAt(place, store);
  if (project === undefined) return storage;
  const ofProject = storageAt({ file: project.file, scope: pinScope(project.file), mode: place.mode }, store);
  const told = new Set<string>();
  return splitPins(storage, {
    storage: ofProject,
    servers: project.servers,
    onProblem: ({ message, hint = "" }) => {
      if (!told.has(message)) onEvent({ type: "problem", message, hint });
      told.add(message);
    },
  });
}

function storageAt(
  { file, scope = file, ofCluster = false, trace }: PinLocation,
  store: OpenPinsOptions["store"],
): PinStorage {
  if (store === undefined) return pinsInFile(file);
  const formerScopes = ofCluster ? [file, pinScope(file)] : [file];
  return pinsInStore({
    store,
    file,
    scope,
    formerScopes,
    isShared: isSharedPinFile(file),
    storeDecides: ofCluster,
    trace,
  });
}

/**
 * Pins in a store. `toolcrib.lock` beside a config of Toolcrib's own stays the form that people share: it wins for the pins that
 * it has, and pins that it no longer has were forgotten on purpose. A file that is missing, or that did not change while the
 * store did, is written again from the store.
 */

interface StoredPinsOptions {
  readonly store: Pick<Store, "pins" | "place" | "follow">;
  readonly file: string;
  readonly scope: string;
  /** Scopes of earlier versions: their pins are moved when they are first read. */
  readonly formerScopes?: readonly string[];
  /** Whether the file is one that people share. Another one is taken in once and set aside. */
  readonly isShared: boolean;
  /** When the file is first read, it only adds pins that the store does not have. */
  readonly storeDecides?: boolean;
  /**
   * A file in the home that is made once there was a lock file. Without one what the store knows was in the file; a store
   * that nodes share knows pins that this node never wrote down.
   */
  readonly trace?: string | undefined;
}

function pinsInStore(options: StoredPinsOptions): PinStorage {
  const { store, file, scope, formerScopes = [], isShared, storeDecides = false, trace } = options;
  let stamp: string | undefined;
  /** The pins when file and store last agreed; undefined as long as they never did. */
  let agreed: PinDocument | undefined;
  let toMove = formerScopes.filter((former) => former !== scope);
  let isStale = false;
  let stopFollowing = (): void => {};

  /** @param known Pins whose definitions match their fingerprints: a row with the same fingerprint stands for the same definition. */
  async function readKept(known = agreed?.pins): Promise<PinTable> {
    const rows = await store.pins.list(scope);
    return withPins(
      new Map(),
      rows.map(({ server, kind, tool, ...stored }) => {
        const named = { kind, name: tool };
        const same = known?.get(server)?.get(pinKey(named));
        const isKnown = same?.fingerprint === stored.fingerprint && same.pinnedAt === stored.pinnedAt;
        return { server, pin: isKnown ? same : parsePin(store.place, server, named, stored) };
      }),
    );
  }

  async function change(from: PinTable, to: PinTable): Promise<void> {
    const put = allPins(to).filter(({ server, pin }) => !isSamePin(from.get(server)?.get(pinKey(pin)), pin));
    const remove = allPins(from).filter(({ server, pin }) => to.get(server)?.has(pinKey(pin)) !== true);
    if (put.length + remove.length === 0) return;
    await store.pins.change(
      scope,
      put.map(rowOf),
      remove.map(({ server, pin: { kind, name } }) => ({ server, kind, tool: name })),
    );
  }

  /** The new place first: a process that dies in between leaves both, and the next one goes on. */
  async function moveHere(): Promise<void> {
    for (const former of toMove) {
      const rows = await store.pins.list(former);
      if (rows.length === 0) continue;
      const known = new Set((await store.pins.list(scope)).map(rowKey));
      await store.pins.change(
        scope,
        rows.filter((row) => !known.has(rowKey(row))),
        [],
      );
      await store.pins.change(former, [], rows);
    }
    toMove = [];
  }

  /**
   * The file decides if it changed, and as long as that is unknown. Otherwise the store changed: another machine may have its own
   * file for the same pins, and two files that both decide would never settle.
   */
  function decides(found: PinDocument): boolean {
    return agreed === undefined || !isSameTable(found.pins, agreed.pins);
  }

  function hadFile(): boolean {
    return trace === undefined || agreed !== undefined || existsSync(trace);
  }

  /** Where it cannot be left, a removal goes unnoticed after the next start. */
  async function leaveTrace(): Promise<void> {
    if (trace === undefined || existsSync(trace)) return;
    await mkdir(dirname(trace), { recursive: true, mode: 0o700 }).catch(() => {});
    await writeFile(trace, `${file}\n`, { mode: 0o600 }).catch(() => {});
  }

  async function locked<T>(task: () => Promise<T>): Promise<T> {
    const target = await realTarget(file);
    await mkdir(dirname(target), { recursive: true });
    return withLock(target, task);
  }

  function isSettled(found: PinDocument | undefined, kept: PinTable): boolean {
    if (!isShared) return found === undefined;
    return found === undefined ? kept.size === 0 : isSameTable(found.pins, kept);
  }

  /** Brings file and store together. */
  async function settle(): Promise<ReadPins> {
    const found = readPinFile(file, agreed);
    const before = await readKept();
    if (found !== undefined && isShared && storeDecides && agreed === undefined) {
      const all = withPins(before, allPins(found.pins));
      await change(before, all);
      const written = await writePinFile(file, all).catch(() => undefined);
      agreed = readPinFile(file, written) ?? { pins: all, digest: "" };
      return { pins: all, isRestored: false };
    }
    if (found !== undefined && isShared && !decides(found)) {
      // One that cannot be written is behind until it can be.
      agreed = (await writePinFile(file, before).catch(() => undefined)) ?? agreed;
      return { pins: before, isRestored: false };
    }
    if (found !== undefined) {
      await change(before, isShared ? found.pins : withPins(before, allPins(found.pins), { replace: true }));
      if (isShared) {
        agreed = found;
        return { pins: found.pins, before, isRestored: false };
      }
      await rename(file, `${file}.moved`);
      return { pins: await readKept(), isRestored: false };
    }
    if (!isShared || before.size === 0) return { pins: before.size === 0 ? undefined : before, isRestored: false };
    const wasHere = hadFile();
    // A file that cannot be written never existed, so it was not removed.
    const written = await writePinFile(file, before).catch(() => undefined);
    agreed = written ?? agreed;
    return { pins: before, isRestored: written !== undefined && wasHere };
  }

  return {
    file,
    unwritten: "They are kept in the store, but the file cannot be shared until it can be written.",
    hasChanged: () => isStale || (isShared && pinFileStamp(file) !== stamp),
    async read() {
      stamp = pinFileStamp(file);
      const found = readPinFile(file, agreed);
      isStale = false;
      const reading = (toMove.length === 0 ? Promise.resolve() : moveHere()).then(() => readKept(found?.pins));
      const kept = await reading.catch((error: unknown) => {
        // A store that cannot be reached now may be later.
        isStale = true;
        throw error;
      });
      if (isSettled(found, kept)) {
        if (found !== undefined) {
          agreed = found;
          await leaveTrace();
        }
        return { pins: found?.pins ?? (kept.size === 0 ? undefined : kept), isRestored: false };
      }
      // A folder that cannot be written has no lock and no writers.
      const read = await locked(settle).catch((error: unknown) => {
        if (isSystemError(error)) return settle();
        throw error;
      });
      stamp = pinFileStamp(file);
      if (stamp !== undefined) await leaveTrace();
      return read;
    },
    async update(edit) {
      return locked(async () => {
        if (toMove.length > 0) await moveHere();
        const found = readPinFile(file, agreed);
        const before = await readKept();
        const isRestored = isShared && found === undefined && before.size > 0 && hadFile();
        const edited = found !== undefined && isShared && !decides(found) ? before : found?.pins;
        const now = isShared ? edited : found && withPins(before, allPins(found.pins), { replace: true });
        const pins = edit(now ?? (before.size === 0 ? undefined : before));
        await change(before, pins);
        if (isShared) {
          agreed =
            found !== undefined && isSameTable(found.pins, pins) ? { ...found, pins } : await writePinFile(file, pins);
          await leaveTrace();
        }
        if (!isShared && found !== undefined) await rename(file, `${file}.moved`);
        // Written a moment ago: if it is gone already, the next look must find that out.
        stamp = pinFileStamp(file) ?? "removed";
        return { pins, isRestored };
      });
    },
    follow(onChange) {
      stopFollowing();
      stopFollowing = store.follow(({ topic, subject }) => {
        if (topic !== "pins" || (subject !== scope && subject !== "*")) return;
        isStale = true;
        onChange();
      });
    },
    close: () => stopFollowing(),
  };
}

function rowOf({ server, pin: { name, ...pin } }: ServerPin): StoredPin {
  return { server, tool: name, ...pin };
}

function rowKey({ server, kind, tool }: StoredPin): string {
  return JSON.stringify([server, kind, tool]);
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

/** Which servers are the project's. */
type ServerFilter = (server: string) => boolean;

interface ProjectPins {
  readonly storage: PinStorage;
  readonly servers: readonly string[];
  /** Called when the project's pins cannot be used or written. The home's still apply. */
  readonly onProblem: (problem: ToolcribError) => void;
}

/**
 * Pins of two configs: a project's lock file applies to the project's servers, and the home's to all others. Pins of other
 * servers stay in a file and are ignored.
 */
function splitPins(home: PinStorage, { storage: project, servers, onProblem }: ProjectPins): PinStorage {
  const ids = new Set(servers);
  const isProjects: ServerFilter = (server) => ids.has(server);
  const ofHome = new PinPart(home, (server) => !ids.has(server));
  const ofProject = new PinPart(project, isProjects);
  return {
    file: home.file,
    fileOf: (server) => (isProjects(server) ? project : home).file,
    problemOf: (server) => (isProjects(server) ? ofProject.problem : undefined),
    part: partKey(project.file, servers),
    unwritten: project.unwritten,
    hasChanged: () => home.hasChanged() || project.hasChanged(),
    async read() {
      const atHome = await ofHome.read();
      const inProject = await ofProject.read().catch((error: unknown): ReadPins => {
        onProblem(asToolcribError(error));
        return { pins: ofProject.known, isRestored: false };
      });
      const before = mergeTables(atHome.before ?? atHome.pins, inProject.before ?? inProject.pins);
      return {
        pins: mergeTables(atHome.pins, inProject.pins),
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

function partKey(file: string, servers: readonly string[]): string {
  return JSON.stringify([file, servers.toSorted()]);
}

class PinPart {
  readonly #storage: PinStorage;
  readonly #isOwn: ServerFilter;
  /** Of its own servers, as last read or written: a file that is gone forgets nothing. */
  #known: PinTable = new Map();
  #problem: ToolcribError | undefined;

  constructor(storage: PinStorage, isOwn: ServerFilter) {
    this.#storage = storage;
    this.#isOwn = isOwn;
  }

  /** undefined where nothing was ever read or written. */
  get known(): PinTable | undefined {
    return this.#known.size === 0 ? undefined : this.#known;
  }

  /** Why it cannot be used. Removing the file does not repair it, unless its pins are known. */
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
function mergeTables(home: PinTable | undefined, project: PinTable | undefined): PinTable | undefined {
  return home === undefined && project === undefined ? undefined : new Map([...(home ?? []), ...(project ?? [])]);
}
