/** What `call`, `read` and `prompt` share: one use of a capability, shown and turned into an exit code. */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve, sep } from "node:path";
import { type Outcome, ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { ContentBlock, Progress, ResourceContents, Result } from "../model/protocol.ts";
import { exitCodeOf, type Invocation } from "./command.ts";
import type { RunningHub } from "./running-hub.ts";

/** `--out`, checked before anything is called. */
export function saveTarget({ flags, cwd }: Invocation): SaveTarget | undefined {
  const path = flags.text("out");
  return path === undefined ? undefined : new SaveTarget(path, { cwd, force: flags.has("force") });
}

interface ResultView<R extends Result> {
  readonly show: (result: R) => void;
  readonly parts: (result: R) => SavedPart[];
  readonly target: SaveTarget | undefined;
}

/** Prints the result or the error of an Outcome and gives the exit code. A tool's own error result is printed too. */
export function showOutcome<R extends Result>(
  { out }: Invocation,
  running: RunningHub,
  outcome: Outcome<R>,
  { show, parts, target }: ResultView<R>,
): number {
  out.transient("");
  const { result } = outcome;
  if (result !== undefined) {
    if (out.json) out.value(result);
    else show(result);
    const saved = target?.save(parts(result)) ?? [];
    for (const path of saved) out.note(`saved ${path}`);
    if (target !== undefined && saved.length === 0) out.note("There was nothing to save.");
  }
  if (outcome.ok) return 0;
  // The hub only sees that the caller gave up; here it is known why.
  const error = outcome.error.code === "cancelled" ? (running.timedOut?.toObject() ?? outcome.error) : outcome.error;
  if (result === undefined) out.error(error);
  return exitCodeOf(error.code);
}

/** Shows progress on a terminal, in place. */
export function progressLine({ out }: Invocation): (progress: Progress) => void {
  return ({ progress, total, message }) => {
    const share = total === undefined || total <= 0 ? String(progress) : `${Math.round((100 * progress) / total)} %`;
    out.transient([share, message].filter((part) => part !== undefined).join("  "));
  };
}

/** Writes binary content of a result to files for `--out`. */

interface SavedPart {
  readonly bytes: Buffer;
  readonly mimeType: string;
  /** A name without extension for a part that goes into a folder. */
  readonly name: string;
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/jpeg": ".jpg",
  "image/svg+xml": ".svg",
  "image/x-icon": ".ico",
  "audio/mpeg": ".mp3",
  "audio/x-wav": ".wav",
  "audio/wave": ".wav",
  "audio/mp4": ".m4a",
  "text/plain": ".txt",
  "text/markdown": ".md",
  "text/javascript": ".js",
  "application/octet-stream": ".bin",
  "application/gzip": ".gz",
};

/** `image/png` gives `.png`; what is unknown gives `.bin`. */
export function extensionForMimeType(mimeType: string): string {
  const plain = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  const known = EXTENSIONS[plain];
  if (known !== undefined) return known;
  const [, subtype = ""] = plain.split("/");
  const word = subtype.replace(/^.*\+/, "").replace(/^x-/, "");
  return /^[a-z0-9]{1,8}$/.test(word) ? `.${word}` : ".bin";
}

/** The parts of content blocks that are bytes: images, audio, embedded blobs. */
export function partsOfBlocks(blocks: readonly ContentBlock[], name: string): SavedPart[] {
  return blocks.flatMap((block) => {
    if (block.type === "resource" && isJsonObject(block["resource"])) {
      const { blob, mimeType } = block["resource"];
      return typeof blob === "string" ? [partOf(blob, mimeType, name)] : [];
    }
    const isBinary = (block.type === "image" || block.type === "audio") && typeof block["data"] === "string";
    return isBinary ? [partOf(String(block["data"]), block["mimeType"], name)] : [];
  });
}

/** All of a resource, its text too: whoever reads to a file wants the file. */
export function partsOfContents(contents: readonly ResourceContents[]): SavedPart[] {
  return contents.flatMap(({ uri, mimeType, text, blob }) => {
    const name = safeName(uri);
    if (typeof blob === "string") return [partOf(blob, mimeType, name)];
    if (typeof text !== "string") return [];
    return [{ bytes: Buffer.from(text, "utf8"), mimeType: mimeType ?? "text/plain", name }];
  });
}

function partOf(base64: string, mimeType: unknown, name: string): SavedPart {
  return {
    bytes: Buffer.from(base64, "base64"),
    mimeType: typeof mimeType === "string" ? mimeType : "application/octet-stream",
    name: safeName(name),
  };
}

/** Names come from servers; only harmless characters reach the file system. */
function safeName(text: string): string {
  const last = text.split(/[\\/]/).findLast((part) => part !== "") ?? "";
  const safe = last
    .replace(/\.[A-Za-z0-9]{1,8}$/, "")
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^-+|(?<!-)-+$/g, "");
  return safe.slice(0, 80) || "content";
}

/** Where `--out` points. Made before the call, so that a taken file name costs no call. */
export class SaveTarget {
  readonly #path: string;
  readonly #isFolder: boolean;
  readonly #force: boolean;

  constructor(path: string, options: { readonly cwd: string; readonly force: boolean }) {
    this.#path = resolve(options.cwd, path);
    this.#force = options.force;
    const isThere = existsSync(this.#path);
    this.#isFolder = isThere ? statSync(this.#path).isDirectory() : path.endsWith("/") || path.endsWith(sep);
    if (isThere && !this.#isFolder && !this.#force) {
      throw new ToolcribError("conflict", `${this.#path} is there already.`, { hint: "--force overwrites it." });
    }
  }

  /** Writes the parts and gives their paths. */
  save(parts: readonly SavedPart[]): string[] {
    return parts.map((part, index) => {
      const path = this.#pathFor(part, parts.length === 1 ? undefined : index + 1);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, part.bytes, { flag: this.#force ? "w" : "wx" });
      return path;
    });
  }

  /** In a folder, and with several parts, a name that is free; one part and a file name give exactly that file. */
  #pathFor(part: SavedPart, number: number | undefined): string {
    const extension = extensionForMimeType(part.mimeType);
    if (this.#isFolder) return this.#free(join(this.#path, part.name), extension, number);
    const own = extname(this.#path);
    if (own !== "" && number === undefined) return this.#path;
    return this.#free(join(dirname(this.#path), basename(this.#path, own)), extension, number);
  }

  #free(stem: string, extension: string, number: number | undefined): string {
    for (let next = number; ; next = (next ?? 1) + 1) {
      const path = `${stem}${next === undefined ? "" : `-${next}`}${extension}`;
      if (this.#force || !existsSync(path)) return path;
    }
  }
}
