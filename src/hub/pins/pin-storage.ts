/** What pins are kept in: a file that people share, a store, or both. */
import type { ToolcribError } from "../../model/errors.ts";
import { pinFileStamp, type PinTable, readPinFile, updatePinFile } from "./pin-file.ts";

export interface ReadPins {
  /** undefined where there is nothing at all, as opposed to a file without pins. */
  readonly pins: PinTable | undefined;
  /** What was known before somebody edited the file. */
  readonly before?: PinTable;
  /** The file was gone, and what is known is written again. */
  readonly isRestored: boolean;
}

export interface UpdatedPins extends ReadPins {
  readonly pins: PinTable;
  /** The servers whose pins could not be written, while those of the others were. */
  readonly failed?: { readonly isOf: (server: string) => boolean; readonly error: ToolcribError };
}

export interface PinStorage {
  /** The lock file that they stand in, or would stand in. */
  readonly file: string;
  /** The lock file that speaks for a server, where there are several. */
  fileOf?(server: string): string;
  /** Why the pins of a server cannot be used, while those of others can. */
  problemOf?(server: string): ToolcribError | undefined;
  /** Says what else it is made of, where that is more than the file; the same text for the same. */
  readonly part?: string;
  /** What it means that something could not be written. */
  readonly unwritten: string;
  /** Whether there may be something else than what was last read or written here. */
  hasChanged(): boolean;
  /** Rejects with `invalid_config` for what cannot be used. It is never overwritten then. */
  read(): Promise<ReadPins>;
  /**
   * Reads, changes and writes, so that no process undoes what another wrote meanwhile.
   * @param isNeeded Rejects, and changes nothing, if the pins of one of these servers cannot be written. Others are `failed`.
   */
  update(
    change: (pins: PinTable | undefined) => PinTable,
    isNeeded?: (server: string) => boolean,
  ): Promise<UpdatedPins>;
  /** From now on `hasChanged` knows of other processes too, until `close`; `onChange` is told where that is heard of. */
  follow(onChange: () => void): void;
  close(): void;
}

/** Pins of a hub without a store. */
export function pinsInFile(file: string): PinStorage {
  let stamp: string | undefined;
  return {
    file,
    unwritten: "Until they can, a change is noticed only while this process runs.",
    hasChanged: () => pinFileStamp(file) !== stamp,
    async read() {
      stamp = pinFileStamp(file);
      return { pins: readPinFile(file), isRestored: false };
    },
    async update(change) {
      let isRestored = false;
      let wasThere = false;
      const pins = await updatePinFile(file, (found) => {
        // Removed since it was last looked at; what is written now brings it back.
        isRestored = found === undefined && stamp !== undefined;
        wasThere = found !== undefined;
        return change(found);
      });
      // Written a moment ago: if it is gone already, the next look must find that out. Without pins none is made.
      stamp = pinFileStamp(file) ?? (wasThere || pins.size > 0 ? "removed" : undefined);
      return { pins, isRestored };
    },
    follow() {},
    close() {},
  };
}
