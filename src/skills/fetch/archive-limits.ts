/** What an archive, a clone or a package may hold. Far above any collection of skills that people publish. */
export interface ArchiveLimits {
  readonly entries: number;
  /** Of one file, unpacked. */
  readonly fileBytes: number;
  /** Of all files together, unpacked. */
  readonly totalBytes: number;
  /** Unpacked bytes for each packed one; counts only above `ratioFrom`, because small texts pack very well. */
  readonly ratio: number;
  readonly ratioFrom: number;
}

const MIB = 1024 * 1024;

export const ARCHIVE_LIMITS: ArchiveLimits = {
  entries: 20_000,
  fileBytes: 64 * MIB,
  totalBytes: 512 * MIB,
  ratio: 200,
  ratioFrom: 8 * MIB,
};
