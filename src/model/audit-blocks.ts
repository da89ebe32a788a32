/** The audit log as a store keeps it: the lines of each file, exactly as they were written, in blocks. */

/** Whole lines of one file. (`file`, `firstLine`) is unique, and the blocks of a file follow each other. */
export interface AuditBlock {
  /** Name of the file that they were written to. */
  readonly file: string;
  readonly chain: string;
  /** Number of the first line in the file, from 0. Every line has one, unlike the number in the chain, damaged or not. */
  readonly firstLine: number;
  readonly lines: number;
  /** Of the lines, with their line breaks. */
  readonly bytes: number;
  /** The earliest and the latest time that a record in it has; "9999" and "" for one without records, so that blocks can be joined. */
  readonly firstTime: string;
  readonly lastTime: string;
}

export interface AuditText extends AuditBlock {
  readonly text: string;
}

/** All blocks of a file together. */
export type KeptFile = Omit<AuditBlock, "firstLine">;

/** The part of a store that is read. */
export interface KeptLog {
  /** Oldest first; all, or those of these names. */
  files(names?: readonly string[]): Promise<KeptFile[]>;
  /** Of all files, or of one; those of a file in their order. */
  blocks(file?: string): Promise<AuditBlock[]>;
  /** Of one file, with their texts, as they are at one moment. */
  wholeBlocks(file: string): Promise<AuditText[]>;
  /** The text of a file, or of its block that begins with this line; empty if there is none. */
  textOf(file: string, firstLine?: number): Promise<string>;
}
