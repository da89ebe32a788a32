/** Where the pins of a config are, and how they are opened. */
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { PinMode } from "../../guard/pins/verdict.ts";
import { clusterOf } from "../../model/cluster-config.ts";
import type { Store } from "../../store/store.ts";
import { isSharedPinFile, pinFileFor } from "./pin-file.ts";
import { pinsInFile, type PinStorage } from "./pin-storage.ts";
import { Pins, type PinsOptions } from "./pins.ts";
import { partName, splitPins } from "./split-pins.ts";
import { pinsInStore } from "./stored-pins.ts";

export interface PinPlace {
  readonly file: string;
  /** What a store keeps them under; the path of the file if absent. */
  readonly scope?: string;
  readonly mode: PinMode;
  /** Whether nodes with lock files of their own share them: then a file only adds what nobody knows yet. */
  readonly ofCluster?: boolean;
  /** Says on this node that there was a lock file. */
  readonly trace?: string;
  /** The lock file of a project config, and the servers that it speaks for. */
  readonly project?: { readonly file: string; readonly servers: readonly string[] };
}

export function pinPlace({ file, config, project, servers }: LoadedConfig, home: string): PinPlace {
  const lock = pinFileFor(file, home);
  const cluster = clusterOf(config.cluster);
  return {
    file: lock,
    // Where the config stands may differ from node to node.
    ...(cluster === undefined
      ? { scope: pinScope(lock) }
      : { scope: `cluster/${cluster.name}`, ofCluster: true, trace: traceOf(lock, home) }),
    // A config in code has no file that pins could stand beside; several programs would share one by accident.
    mode: config.guard.pins ?? (file === null && project === undefined ? "off" : "warn"),
    ...(project === undefined ? {} : { project: { file: pinFileFor(project.file, home), servers: projects(servers) } }),
  };
}

function projects(servers: LoadedConfig["servers"]): string[] {
  return servers.filter(({ fromProject }) => fromProject === true).map(({ id }) => id);
}

/** What pins of this place have as their `part`. */
export function partOf({ project }: PinPlace): string | undefined {
  return project && partName(project.file, project.servers);
}

interface OpenPinsOptions extends Pick<PinsOptions, "clock" | "onEvent" | "pinsResources" | "mask"> {
  /** Without one they are in the file alone. */
  readonly store: Pick<Store, "pins" | "place" | "follow"> | undefined;
}

function traceOf(lock: string, home: string): string {
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

export function openPins(place: PinPlace, { store, ...options }: OpenPinsOptions): Promise<Pins> {
  return Pins.open({ ...options, mode: place.mode, storage: storageOf(place, store, options.onEvent) });
}

function storageOf(
  { project, ...place }: PinPlace,
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
  { file, scope = file, ofCluster = false, trace }: PinPlace,
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
