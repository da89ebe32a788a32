/** What a journal says of a step. Each holds all that is needed to take the step back, done or not. */

/** A file gets new contents, appears or disappears. */
export interface FileStep {
  readonly kind: "file";
  readonly id: number;
  /** Past symbolic links. */
  readonly path: string;
  /** Null if there was no file. */
  readonly before: { readonly copy: string; readonly digest: string; readonly mode: number } | null;
  /** The digest of the new contents; null if the file goes. */
  readonly after: string | null;
}

/** A folder is put in place, or taken away. */
export interface FolderStep {
  readonly kind: "folder";
  readonly id: number;
  readonly path: string;
  /** Beside the target: the copy before it is in place. Null if the folder is only taken away. */
  readonly fresh: { readonly path: string; readonly digest: string } | null;
  /** Beside the target: where the present folder waits until the end. Null if there is none. */
  readonly old: string | null;
}

/** Folders that had to be made for a file, outermost first. */
export interface MadeStep {
  readonly kind: "made";
  readonly id: number;
  readonly paths: readonly string[];
}

/** An entry of something that is no file, such as a table, before and after; null where there is none. */
export interface EntryChange {
  readonly id: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** Entries change together. What they are in is known to whoever changed them, and takes them back. */
export interface EntriesStep {
  readonly kind: "entries";
  readonly id: number;
  /** What they are in, for messages. */
  readonly path: string;
  readonly changes: readonly EntryChange[];
}

export type Step = FileStep | FolderStep | MadeStep | EntriesStep;

/** Puts back the entries that are still `after`. It may be called again after it was cut off. */
export type UndoEntries = (changes: readonly EntryChange[]) => Promise<"restored" | "kept" | "same">;

type WithoutId<T> = T extends Step ? Omit<T, "id"> : never;
export type NewStep = WithoutId<Step>;
