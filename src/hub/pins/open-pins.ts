/** Where the pins of a config are, and how they are opened. */
import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { PinMode } from "../../guard/pins/verdict.ts";
import type { Store } from "../../store/store.ts";
import { isSharedPinFile, pinFileFor } from "./pin-file.ts";
import { pinsInFile, type PinStorage } from "./pin-storage.ts";
import { Pins, type PinsOptions } from "./pins.ts";
import { pinsInStore } from "./stored-pins.ts";

export interface PinPlace {
  readonly file: string;
  /** What a store keeps them under; the path of the file if absent. */
  readonly scope?: string;
  readonly mode: PinMode;
}

export function pinPlace({ file, config }: LoadedConfig, home: string): PinPlace {
  const lock = pinFileFor(file, home);
  return {
    file: lock,
    scope: pinScope(lock),
    // A config in code has no file that pins could stand beside; several programs would share one by accident.
    mode: config.guard.pins ?? (file === null ? "off" : "warn"),
  };
}

interface OpenPinsOptions extends Pick<PinsOptions, "clock" | "onEvent"> {
  /** Without one they are in the file alone. */
  readonly store: Pick<Store, "pins" | "place" | "follow"> | undefined;
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

export function openPins(
  { file, scope = file, mode }: PinPlace,
  { store, ...options }: OpenPinsOptions,
): Promise<Pins> {
  return Pins.open({ ...options, mode, storage: storageOf(file, scope, store) });
}

function storageOf(file: string, scope: string, store: OpenPinsOptions["store"]): PinStorage {
  if (store === undefined) return pinsInFile(file);
  return pinsInStore({ store, file, scope, formerScopes: [file], isShared: isSharedPinFile(file) });
}
