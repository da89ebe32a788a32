/**
 * Whether the text of an argument is what a rule names. A server reads its arguments in ways of its own, so a text has readings: the
 * file that a path leads to, the URI in canonical form, each address of a list. `possible` says that some reading matches, `sure`
 * that every one does. What denies or asks goes by the first, what lets a call through by the second.
 *
 * Upper and lower case, compatibility forms of Unicode and invisible characters make a text different to `sure` and not to
 * `possible`. In a path `*` is one segment to `sure` and any number to `possible`.
 */
import { canonicalPatterns, spellingsOf } from "./canonical-uri.ts";
import { compileGlob, type Glob } from "./glob.ts";

export interface Match {
  readonly possible: boolean;
  readonly sure: boolean;
}

export const NO: Match = { possible: false, sure: false };
export const IN_DOUBT: Match = { possible: true, sure: false };
export const YES: Match = { possible: true, sure: true };

/** Where a server looks for files. The same object for every call of a server, as long as nothing of it changes. */
export interface FilePlace {
  /** Undefined if it is not known: what begins with `~` is in doubt then. */
  readonly home?: string | undefined;
  /** The folders that a relative path may be resolved against; none if they are not known. */
  readonly bases: readonly string[];
}

/** The texts of one call, as far as they were read already: many rules look at the same argument. */
export class ArgumentReader {
  readonly place: FilePlace;
  /** Files that absolute paths lead to once links are followed; null where that could not be told. */
  readonly #links: ReadonlyMap<string, string | null> | undefined;
  readonly #texts = new Map<string, TextReadings | null>();
  readonly #paths = new Map<string, PathReadings | null>();
  readonly #uris = new Map<string, UriReadings | null>();
  readonly #several = {
    paths: new Map<string, readonly string[] | null>(),
    uris: new Map<string, readonly string[] | null>(),
  };
  readonly #keys = new Map<object, ReadonlyMap<string, readonly string[]>>();
  #lastText: string | undefined;
  #lastTextRead: TextReadings | undefined;
  #lastPath: string | undefined;
  #lastPathRead: PathReadings | undefined;

  #hashed: { readonly args: object; readonly hash: string | undefined } | undefined;

  /** @param links Undefined where the server's files cannot be looked at. */
  constructor(place: FilePlace, links?: ReadonlyMap<string, string | null>) {
    this.place = place;
    this.#links = links;
  }

  get followsLinks(): boolean {
    return this.#links !== undefined;
  }

  /** Undefined where links cannot be followed at all. A path that was to be looked up and was not is in doubt. */
  real(path: string): string | null | undefined {
    return this.#links === undefined ? undefined : (this.#links.get(path) ?? null);
  }

  text(text: string): TextReadings | undefined {
    if (text === this.#lastText) return this.#lastTextRead;
    let read = this.#texts.get(text);
    if (read === undefined) this.#texts.set(text, (read = readText(text) ?? null));
    [this.#lastText, this.#lastTextRead] = [text, read ?? undefined];
    return this.#lastTextRead;
  }

  path(text: string): PathReadings | undefined {
    if (text === this.#lastPath) return this.#lastPathRead;
    let read = this.#paths.get(text);
    if (read === undefined) this.#paths.set(text, (read = readPath(text, this) ?? null));
    [this.#lastPath, this.#lastPathRead] = [text, read ?? undefined];
    return this.#lastPathRead;
  }

  uri(text: string): UriReadings | undefined {
    let read = this.#uris.get(text);
    if (read === undefined) this.#uris.set(text, (read = readUri(text) ?? null));
    return read ?? undefined;
  }

  /** As by `severalPaths` and `severalUris`, once for many rules. */
  several(kind: "paths" | "uris", text: string): readonly string[] | undefined {
    const known = this.#several[kind];
    let parts = known.get(text);
    if (parts === undefined)
      known.set(text, (parts = (kind === "paths" ? severalPaths(text) : severalUris(text)) ?? null));
    return parts ?? undefined;
  }

  /** Keys of the object that some servers take for this one, without itself. @param folded Of the key, as by `foldKey`. */
  twins(object: object, key: string, folded: string): readonly string[] {
    let keys = this.#keys.get(object);
    if (keys === undefined) this.#keys.set(object, (keys = Map.groupBy(Object.keys(object), foldKey)));
    const alike = keys.get(folded);
    const twins =
      alike === undefined || (alike.length === 1 && alike[0] === key) ? [] : alike.filter((each) => each !== key);
    // Programs in JavaScript that copy their arguments find any name in what it holds.
    return Object.hasOwn(object, PROTOTYPE) && key !== PROTOTYPE ? [...twins, PROTOTYPE] : twins;
  }

  /**
   * All that hints of a kind are compared with. Undefined where the text has to be matched: it cannot be read, has several parts,
   * or what it is read as depends on the rule.
   */
  readings(of: ValueHint["of"], text: string): Iterable<string> | undefined {
    switch (of) {
      case "written":
        return [text];
      case "text":
        return this.text(text)?.loose;
      case "path":
        return this.several("paths", text) === undefined ? this.path(text)?.loose : undefined;
      case "uri": {
        const isOne = HAS_ONLY_SCHEME.test(text) && this.several("uris", text) === undefined;
        const read = isOne ? this.uri(text) : undefined;
        return read && [...read.spellings, ...read.loose];
      }
    }
  }

  /** The hash of the call's arguments, worked out once. */
  hashOf<A extends object>(args: A, hash: (args: A) => string | undefined): string | undefined {
    if (this.#hashed?.args !== args) this.#hashed = { args, hash: hash(args) };
    return this.#hashed.hash;
  }
}

const PROTOTYPE = "__proto__";

/** Servers read the names of arguments in other case, too: Go's JSON takes `Branch` for `branch`, and the last of both counts. */
export function foldKey(key: string): string {
  return fold(key).replace(/[\s_-]+/g, "");
}

/** A text can match a pattern only if one of its readings begins, or ends, like this. */
export interface ValueHint {
  /** The readings that are meant; `written` is the text itself. */
  readonly of: "written" | "text" | "path" | "uri";
  readonly isEnd: boolean;
  readonly text: string;
  /** It says nothing if this folder leads elsewhere. */
  readonly folder?: string | undefined;
}

export interface ValuePattern {
  match(text: string, reader: ArgumentReader): Match;
  /** A text that can be read and fits none of them does not match. Undefined where only `match` can tell. */
  hints(place: FilePlace): readonly ValueHint[] | undefined;
  /** Adds the paths whose links have to be known for `match`. */
  addPaths(text: string, paths: LinkPaths): void;
}

/** The absolute paths whose links have to be known for a decision: many rules look at the same argument. */
export class LinkPaths {
  readonly place: FilePlace;
  readonly #paths = new Set<string>();
  readonly #texts = new Set<string>();

  constructor(place: FilePlace) {
    this.place = place;
  }

  get all(): string[] {
    return [...this.#paths];
  }

  add(path: string): void {
    this.#paths.add(path);
  }

  /** All that a text, and every path in it, may stand for. */
  addText(text: string): void {
    if (this.#texts.has(text)) return;
    this.#texts.add(text);
    const parts = severalPaths(text) ?? [];
    for (const each of parts.length > MAX_PATHS ? [text] : [text, ...parts])
      for (const { path } of pathCandidates(each, this.place) ?? []) this.#paths.add(path).add(cleanPath(path));
  }
}

/** Longer texts are in doubt. */
const MAX_TEXT = 64 * 1024;
const MAX_PATH = 8192;
const MAX_DECODINGS = 6;
const MAX_PARTS = 1000;

/** Ends of the names of arguments whose values are files, also where a pattern does not look like a path. */
const FILE_WORD =
  /(?:path|file|filename|dir|directory|directories|folder|source|destination|src|dst|dest|cwd|root)s?$/i;

/** Of a pattern on loose readings: what is before the first wildcard, or else after the last. */
function looseHint(
  of: ValueHint["of"],
  folded: string,
  { isWild, folder }: { readonly isWild: boolean; readonly folder?: string },
): ValueHint | undefined {
  const wild = isWild ? folded.search(/[*?]/) : -1;
  if (wild !== 0) return { of, isEnd: false, text: wild < 0 ? folded : folded.slice(0, wild), folder };
  const end = folded.slice(Math.max(folded.lastIndexOf("*"), folded.lastIndexOf("?")) + 1);
  return end === "" ? undefined : { of, isEnd: true, text: end, folder };
}

/** @param name The path of the argument as written. */
export function compileValue(pattern: string, { literal, name }: { literal: boolean; name: string }): ValuePattern {
  if (/^file:/i.test(pattern)) return new FilePattern(filePathOf(pattern), literal);
  if (/^(?:[a-z][a-z0-9+.-]*|\*):\/\//i.test(pattern)) return new UriPattern(pattern, literal);
  if (/^(?:[\\/~]|[a-z]:[\\/]|\.{1,2}[\\/]|\*{1,2}\/)/i.test(pattern)) return new FilePattern(pattern, literal);
  const isWild = !literal && /^\*+$/.test(pattern);
  const namesFile = FILE_WORD.test(name.replace(/(?:\[\*\])+$/, ""));
  if ((namesFile || pattern.includes("/")) && !isWild) return new EitherPattern(pattern, { literal, namesFile });
  return new TextPattern(pattern, literal);
}

function writtenHint(text: string): ValueHint {
  return { of: "written", isEnd: false, text };
}

/** A name without its own folder may be a file or another thing with slashes, such as a branch. */
class EitherPattern implements ValuePattern {
  readonly #text: TextPattern;
  readonly #file: FilePattern;
  readonly #namesFile: boolean;
  readonly #exact: string | undefined;

  /** @param namesFile Whether the argument is a file by its name. Where it is not, both have to agree. */
  constructor(pattern: string, { literal, namesFile }: { literal: boolean; namesFile: boolean }) {
    this.#namesFile = namesFile;
    this.#exact = literal ? pattern : undefined;
    this.#text = new TextPattern(pattern, literal);
    this.#file = new FilePattern(`./${pattern}`, literal);
  }

  match(text: string, reader: ArgumentReader): Match {
    // It was approved as it is written.
    if (this.#exact === text) return YES;
    const asText = this.#text.match(text, reader);
    if (reader.place.bases.length === 0) return asText;
    const asFile = this.#file.match(text, reader);
    if (asText === NO && asFile === NO) return NO;
    const isFile = this.#namesFile || ABSOLUTE.test(text) || /^(?:~|file:)/i.test(text);
    return asFile.sure && (asText.sure || isFile) ? YES : IN_DOUBT;
  }

  addPaths(text: string, paths: LinkPaths): void {
    if (paths.place.bases.length > 0) this.#file.addPaths(text, paths);
  }

  hints(place: FilePlace): readonly ValueHint[] | undefined {
    const asText = this.#text.hints();
    const asFile = place.bases.length === 0 ? [] : this.#file.hints(place);
    if (asText === undefined || asFile === undefined) return undefined;
    return [...(this.#exact === undefined ? [] : [writtenHint(this.#exact)]), ...asText, ...asFile];
  }
}

class TextPattern implements ValuePattern {
  readonly #pattern: string;
  readonly #folded: string;
  readonly #exact: Glob;
  readonly #loose: Glob;
  readonly #address: Glob | undefined;
  readonly #isAnything: boolean;
  readonly #hasWildcards: boolean;

  constructor(pattern: string, literal: boolean) {
    this.#pattern = pattern.normalize("NFC");
    this.#folded = fold(pattern);
    this.#hasWildcards = !literal && /[*?]/.test(pattern);
    this.#isAnything = this.#hasWildcards && /^\*+$/.test(pattern);
    this.#exact = segmentGlob(this.#pattern, literal);
    this.#loose = compileGlob(this.#folded);
    this.#address = pattern.includes("@") ? compileGlob(this.#pattern.toLowerCase()) : undefined;
  }

  addPaths(): void {}

  hints(): readonly ValueHint[] | undefined {
    const hint = looseHint("text", this.#folded, { isWild: this.#hasWildcards });
    if (this.#isAnything || hint === undefined) return undefined;
    return this.#hasWildcards ? [hint] : [writtenHint(this.#pattern), hint];
  }

  match(text: string, reader: ArgumentReader): Match {
    if (this.#isAnything || (!this.#hasWildcards && text === this.#pattern)) return YES;
    const read = reader.text(text);
    if (read === undefined) return IN_DOUBT;
    // Without wildcards the readings are looked up, so that many rules on one argument cost little.
    const isPossible = this.#hasWildcards ? some(read.loose, this.#loose) : read.loose.has(this.#folded);
    if (!isPossible) return NO;
    return read.decodings.every((reading) => this.#isSure(reading)) ? YES : IN_DOUBT;
  }

  /** A wildcard takes nothing that could end one value and begin another: each part has to match by itself. */
  #isSure(reading: string): boolean {
    if (CONTROL.test(reading)) return false;
    if (!this.#hasWildcards) return reading === this.#pattern;
    const address = this.#address;
    if (address !== undefined) {
      // What looks like a mark of an address to some servers only, and words that are encoded.
      if (fold(reading).split("@").length !== reading.split("@").length || /=\?|&#/.test(reading)) return false;
      const parts = reading.split(/[,;]/).filter((part) => part.trim() !== "");
      return (
        parts.length > 0 &&
        parts.every((part) => address(ONE_RECIPIENT.exec(part)?.slice(1).join("").toLowerCase() ?? ""))
      );
    }
    const parts = this.#parts(reading);
    return parts !== undefined && parts.length > 0 && parts.every(this.#exact);
  }

  /** Undefined where a path in it may lead elsewhere. */
  #parts(reading: string): string[] | undefined {
    if (/(?:^|[\\/])\.{1,2}(?:[\\/]|$)/.test(reading)) return undefined;
    // Where a command is meant, nothing joins another one or leads elsewhere.
    const isCommand = /\s/.test(this.#pattern);
    if (isCommand && (reading.match(/[;|&$<>`]/g) ?? []).some((mark) => !this.#pattern.includes(mark)))
      return undefined;
    let parts = [reading];
    // Where a path is meant, a blank may end it.
    if (this.#pattern.includes("/") && !/\s/.test(this.#pattern)) parts = reading.split(/\s+/);
    for (const separator of new Set(reading.match(SEPARATORS) ?? [])) {
      if (this.#pattern.includes(separator)) continue;
      parts = parts.flatMap((part) => part.split(separator));
    }
    return parts.map((part) => part.trim()).filter((part) => part !== "");
  }
}

// oxlint-disable-next-line no-control-regex -- what no name, address or path has
const CONTROL = /[\0-\x1f\x7f]/;
/** Between values in one text, of lists, references and commands, and between segments of a path. */
const SEPARATORS = /[,;:|&<>$`/\\]/g;
/** An address alone, or behind a name; without the marks of routes through other hosts. */
const ONE_RECIPIENT =
  /^\s*(?:([^\s@%!<>"()[\]:\\]+@[^\s@%!<>"()[\]:\\]+)|[^@<>:]*<([^\s@%!<>"()[\]:\\]+@[^\s@%!<>"()[\]:\\]+)>)\s*$/;
/** Has no other reading: nothing in it is encoded, folded, resolved or separates. */
const PLAIN = /^[a-z0-9_-]+(?:\/[a-z0-9_-]+)*$/;

interface TextReadings {
  /** The text, decoded none to several times. */
  readonly decodings: readonly string[];
  readonly loose: ReadonlySet<string>;
}

function readText(text: string): TextReadings | undefined {
  if (PLAIN.test(text)) return { decodings: [text], loose: new Set([text, withoutHeads(text)]) };
  const decodings = text.length > MAX_TEXT ? undefined : decodingsOf(text.normalize("NFC"));
  if (decodings === undefined) return undefined;
  const loose = new Set<string>();
  for (const decoded of decodings) {
    const folded = fold(decoded);
    const parts = folded.split(/[\s,;:|&<>$`"'()[\]{}+]+/).filter((part) => part !== "");
    if (parts.length > MAX_PARTS) return undefined;
    for (const part of [folded, ...parts]) {
      loose.add(part);
      loose.add(withoutHeads(part));
      if (/[\\/]/.test(part)) for (const form of pathForms(part)) loose.add(form);
    }
  }
  return { decodings, loose };
}

/** The branch of a full reference. */
function withoutHeads(text: string): string {
  return text.replace(/^(?:refs\/)?heads\//, "");
}

/** The forms that percent-encoding can hide. Undefined if it does not end, or is not of UTF-8. */
function decodingsOf(text: string): string[] | undefined {
  const all = [text];
  for (let decoded = text; decoded.includes("%");) {
    const next = decodeOnce(decoded);
    if (next === undefined || all.length > MAX_DECODINGS) return undefined;
    if (next === decoded) break;
    all.push((decoded = next.normalize("NFC")));
  }
  return all;
}

function decodeOnce(text: string): string | undefined {
  try {
    return text.replace(/(?:%[0-9a-f]{2})+/gi, decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** The same for texts that differ in case, compatibility forms and what is not seen. */
function fold(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text.toLowerCase().trim();
  return text
    .normalize("NFKC")
    .replace(/\p{Default_Ignorable_Code_Point}+/gu, "")
    .toLowerCase()
    .normalize("NFKC")
    .trim();
}

const ABSOLUTE = /^(?:[\\/]|[A-Za-z]:[\\/])/;

class FilePattern implements ValuePattern {
  readonly #pattern: string;
  readonly #literal: boolean;
  /** `~` and relative patterns mean other files at another place. */
  readonly #placed = new WeakMap<FilePlace, readonly PlacedPattern[] | null>();
  #lastPlace: FilePlace | undefined;
  #lastPlaced: readonly PlacedPattern[] | null = null;

  constructor(pattern: string, literal: boolean) {
    this.#pattern = pattern.normalize("NFC");
    this.#literal = literal;
  }

  match(text: string, reader: ArgumentReader): Match {
    if (this.#literal && text === this.#pattern) return YES;
    const whole = this.#matchOne(text, reader);
    const parts = reader.several("paths", text);
    if (parts === undefined || whole === IN_DOUBT) return whole;
    if (parts.length > MAX_PATHS) return IN_DOUBT;
    const each = parts.map((part) => this.#matchOne(part, reader));
    if (whole === NO && each.every((match) => match === NO)) return NO;
    return whole === YES && each.every((match) => match === YES) ? YES : IN_DOUBT;
  }

  #matchOne(text: string, reader: ArgumentReader): Match {
    const read = reader.path(text);
    const placed = this.#at(reader.place);
    if (read === undefined || placed === null) return IN_DOUBT;
    const patterns = reader.followsLinks ? this.#withReal(placed, reader) : placed;
    if (patterns === undefined) return IN_DOUBT;
    if (!isAnyLoose(patterns, read.loose)) return NO;
    return read.files.every((file) => patterns.some(({ exact }) => exact(file))) ? YES : IN_DOUBT;
  }

  /** The patterns, and those with the folder that theirs leads to. Undefined if that cannot be told. */
  #withReal(placed: readonly PlacedPattern[], reader: ArgumentReader): readonly CompiledPath[] | undefined {
    let patterns: CompiledPath[] | undefined;
    for (const { folder, rest, real } of placed) {
      const leadsTo = folder === "" ? undefined : reader.real(folder);
      if (leadsTo === null) return undefined;
      if (leadsTo === undefined || leadsTo === folder) continue;
      const pattern = cleanPath(leadsTo) + rest;
      let compiled = real.get(pattern);
      if (compiled === undefined) {
        compiled = compilePath(pattern, this.#literal);
        real.clear();
        real.set(pattern, compiled);
      }
      patterns ??= [...placed];
      patterns.push(compiled);
    }
    return patterns ?? placed;
  }

  addPaths(text: string, paths: LinkPaths): void {
    paths.addText(text);
    for (const { folder } of this.#at(paths.place) ?? []) if (folder !== "") paths.add(folder);
  }

  hints(place: FilePlace): readonly ValueHint[] | undefined {
    const hints = this.#literal ? [writtenHint(this.#pattern)] : [];
    for (const { folder, rest } of this.#at(place) ?? []) {
      const hint = looseHint("path", fold(folder + rest), { isWild: !this.#literal, ...(folder !== "" && { folder }) });
      if (hint === undefined) return undefined;
      hints.push(hint);
    }
    return this.#at(place) === null ? undefined : hints;
  }

  #at(place: FilePlace): readonly PlacedPattern[] | null {
    if (place === this.#lastPlace) return this.#lastPlaced;
    let placed = this.#placed.get(place);
    if (placed === undefined) {
      const patterns = absolutePatterns(this.#pattern, place) ?? null;
      placed = patterns && patterns.map((pattern) => placedPattern(pattern, this.#literal));
      this.#placed.set(place, placed);
    }
    [this.#lastPlace, this.#lastPlaced] = [place, placed];
    return placed;
  }
}

/** More paths in one text are in doubt. */
const MAX_PATHS = 50;
const PATH_SEPARATORS = /[\s,;:|&<>"'`=@]+/;
/** Between two paths: in the name of a file these do not come before a slash. */
const SECOND_PATH = /[\s,;:|&<>"'`=@](?:~?[\\/]|\.{1,2}[\\/]|[a-z]:[\\/]|file:)/i;

/** The paths in a text that has more than one, as in a list or a command; undefined for a text that is one path. */
function severalPaths(text: string): string[] | undefined {
  if (PLAIN_PATH.test(text) || text.length > MAX_PATH) return undefined;
  const start = /^\s*(?:file:[\\/]*(?:[a-z]:)?|[\\/]?[a-z]:|[a-z][a-z0-9+.-]*:(?=\/\/))?/i.exec(text)?.[0].length ?? 0;
  if (!SECOND_PATH.test(text.slice(start))) return undefined;
  return text.split(PATH_SEPARATORS).filter((part) => part !== "");
}

/** Written for speed, like what is called for each rule of a call: most do not apply. */
function isAnyLoose(patterns: readonly CompiledPath[], files: readonly string[]): boolean {
  for (const { loose } of patterns) for (const file of files) if (loose(file)) return true;
  return false;
}

interface PlacedPattern extends CompiledPath {
  /** The part before the first segment with a wildcard: a folder, whose links count too. */
  readonly folder: string;
  readonly rest: string;
  /** The pattern with the folder that its own leads to, as it was last seen. */
  readonly real: Map<string, CompiledPath>;
}

function placedPattern(pattern: string, literal: boolean): PlacedPattern {
  const wild = literal ? -1 : pattern.search(/[*?]/);
  const folder = wild < 0 ? pattern : pattern.slice(0, Math.max(0, pattern.lastIndexOf("/", wild)));
  return { ...compilePath(pattern, literal), folder, rest: pattern.slice(folder.length), real: new Map() };
}

interface CompiledPath {
  readonly exact: Glob;
  readonly loose: Glob;
}

function compilePath(pattern: string, literal: boolean): CompiledPath {
  const folded = fold(pattern);
  const glob = literal ? (text: string) => text === folded : compileGlob(folded);
  return { exact: segmentGlob(pattern, literal), loose: glob };
}

/** The pattern as absolute ones, normalised; undefined where the folder that it is in is not known. */
function absolutePatterns(pattern: string, { home, bases }: FilePlace): readonly string[] | undefined {
  const slashed = pattern.replaceAll("\\", "/");
  if (/^~(?:\/|$)/.test(slashed)) return home === undefined ? undefined : [cleanPath(home + slashed.slice(1))];
  if (/^(?:~|\.{1,2}(?:\/|$))/.test(slashed)) {
    if (slashed.startsWith("~") || bases.length === 0) return undefined;
    return bases.map((base) => cleanPath(`${base}/${slashed}`));
  }
  return [/^\*{1,2}\//.test(slashed) ? slashed : cleanPath(slashed)];
}

/** The path of a `file:` URI; what is not one is left as it is. */
function filePathOf(uri: string): string {
  const path = uri.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/i, "");
  return path.replace(/^\/([a-z]:[\\/])/i, "$1");
}

interface PathReadings {
  /** The files that it may name: normalised, and with links followed. */
  readonly files: readonly string[];
  readonly loose: readonly string[];
}

function readPath(text: string, reader: ArgumentReader): PathReadings | undefined {
  const candidates = pathCandidates(text, reader.place);
  if (candidates === undefined) return undefined;
  const files = new Set<string>();
  for (const { path, isFolder } of candidates) {
    const clean = cleanPath(path);
    if (isFolder !== true) files.add(clean);
    for (const each of [path, clean]) {
      const real = reader.real(each);
      if (real === null) return undefined;
      // A folder `~` that is a link leads where its name does not say.
      if (real !== undefined && isFolder === true && real !== clean) return undefined;
      if (real !== undefined && isFolder !== true) files.add(cleanPath(real));
    }
  }
  const all = [...files];
  // A folder is also what is below it.
  return { files: all, loose: all.flatMap(looseForms).flatMap((path) => [path, `${path}/`]) };
}

interface PathCandidate {
  /** Absolute, not normalised: the system follows a link before it goes up from it, and many programs do it the other way round. */
  readonly path: string;
  /** A folder that some server may take `~` for, which is not what is meant. */
  readonly isFolder?: true;
}

/** Stands for itself, with nothing to decode, resolve or expand. */
const PLAIN_PATH = /^\/?[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$/;

/**
 * The paths that a text may stand for. Undefined where that cannot be told: control characters, encodings without end, homes of
 * others, variables, wildcards, and relative paths where the folder is not known.
 */
function pathCandidates(text: string, { home, bases }: FilePlace): PathCandidate[] | undefined {
  if (PLAIN_PATH.test(text) && text.length <= MAX_PATH) {
    if (text.startsWith("/")) return [{ path: text }];
    return bases.length === 0 ? undefined : bases.map((base) => ({ path: `${base}/${text}` }));
  }
  if (text === "" || text.length > MAX_PATH || CONTROL.test(text) || text.includes("*")) return undefined;
  if (/^\s*[\\/]{2}[?.][\\/]/.test(text)) return undefined;
  const decodings = decodingsOf(text.normalize("NFC"));
  if (decodings === undefined) return undefined;
  const candidates: PathCandidate[] = [];
  const add = (path: string): void => {
    for (const form of slashForms(path)) candidates.push({ path: form });
  };
  for (const decoded of decodings) {
    const isUri = /^\s*file:/i.test(decoded);
    const path = (isUri ? filePathOf(decoded.trim()) : decoded).replace(/^\$(?:HOME|\{HOME\})(?=[\\/]|$)/, "~");
    if (CONTROL.test(path) || /^\s*(?:~[^\\/]|\$|%[^%]+%)/.test(path)) return undefined;
    const cut = path.search(/[?#]/);
    for (const form of cut > 0 ? [path, path.slice(0, cut)] : [path]) {
      const trimmed = form.trim();
      if (ABSOLUTE.test(trimmed)) add(form.trimStart());
      else if (trimmed.startsWith("~")) {
        if (home === undefined) return undefined;
        add(home + trimmed.slice(1));
        // A server that does not know `~` looks for a folder of that name.
        for (const base of bases) candidates.push({ path: cleanPath(`${base}/~`), isFolder: true });
      } else {
        if (bases.length === 0) return undefined;
        for (const base of bases) add(`${base}/${form}`);
      }
    }
  }
  return candidates;
}

/** With backslashes as slashes and as they are, and without blanks at the end. */
function slashForms(path: string): string[] {
  const forms = [path.replaceAll("\\", "/")];
  if (path.includes("\\") && !/^(?:[A-Za-z]:|\\)/.test(path)) forms.push(path);
  const trimmed = path.trimEnd();
  return trimmed === path ? forms : [...forms, ...slashForms(trimmed)];
}

function pathForms(path: string): string[] {
  return slashForms(path).map(cleanPath);
}

/** Dot segments resolved, slashes collapsed, none at the end, the letter of a drive in upper case. */
function cleanPath(path: string): string {
  if (path.startsWith("/") && PLAIN_PATH.test(path)) return path;
  const [drive = ""] = /^\/?[A-Za-z]:(?=\/|$)/.exec(path) ?? [];
  const rest = path.slice(drive.length);
  const kept: string[] = [];
  for (const segment of rest.split("/")) {
    if (segment === "..") {
      if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
      else if (!rest.startsWith("/")) kept.push("..");
    } else if (segment !== "" && segment !== ".") kept.push(segment);
  }
  const letter = drive.replace("/", "").toUpperCase();
  return letter + (rest.startsWith("/") || letter !== "" ? "/" : "") + kept.join("/");
}

/** The names that some file systems take for the same: without case, without dots and blanks at the end of a name, without streams. */
function looseForms(path: string): string[] {
  const folded = fold(path);
  if (!/[. ](?:\/|$)|:/.test(folded)) return [folded];
  const bare = folded
    .split("/")
    .map((segment, index) => (index === 0 ? segment : segment.replace(/:.*$/s, "").replace(/(?<![. ])[. ]+$/, "")))
    .join("/");
  return bare === folded ? [folded] : [folded, bare];
}

/** Not the name of a host before a port. */
const HAS_ONLY_SCHEME = /^\s*[a-z][a-z0-9+.-]*:(?!\d)/i;

class UriPattern implements ValuePattern {
  readonly #pattern: string;
  readonly #literal: boolean;
  readonly #exact: readonly Glob[];
  readonly #loose: readonly Glob[];
  readonly #scheme: string;
  readonly #hasAnyHost: boolean;
  readonly #hints: readonly ValueHint[];

  constructor(pattern: string, literal: boolean) {
    this.#pattern = pattern;
    this.#literal = literal;
    this.#hasAnyHost = !literal && /[*?]/.test(authorityOf(pattern));
    const forms = literal ? (spellingsOf(pattern) ?? [pattern]) : [pattern, ...canonicalPatterns(pattern)];
    // As the globs below see the forms. A slash before a wildcard may be missing.
    const seen = new Set([pattern, ...forms.flatMap((form) => [form.normalize("NFC"), fold(form)])]);
    const beginnings = [...seen].map((form) => (literal ? form : form.replace(/[*?].*$/s, "")).replace(/\/$/, ""));
    this.#hints = [...new Set(beginnings)].map((text) => ({ of: "uri", isEnd: false, text }));
    this.#exact = forms.map((form) => segmentGlob(form.normalize("NFC"), literal));
    this.#loose = forms.map((form) => {
      const folded = fold(form);
      return literal ? (text: string) => text === folded : compileGlob(folded);
    });
    this.#scheme = pattern.slice(0, pattern.indexOf(":")).replace("*", "https");
  }

  addPaths(): void {}

  hints(): readonly ValueHint[] {
    return this.#literal ? [writtenHint(this.#pattern), ...this.#hints] : this.#hints;
  }

  match(text: string, reader: ArgumentReader): Match {
    if (this.#literal && text === this.#pattern) return YES;
    const whole = this.#matchOne(text, reader);
    if (whole === IN_DOUBT) return whole;
    const parts = reader.several("uris", text);
    if (parts === undefined) return whole;
    if (whole === YES || parts.length > MAX_URIS) return IN_DOUBT;
    return parts.every((part) => this.#matchOne(part, reader) === NO) ? NO : IN_DOUBT;
  }

  #matchOne(text: string, reader: ArgumentReader): Match {
    const [scheme] = /^\s*[a-z][a-z0-9+.-]*:/i.exec(text) ?? [];
    // Servers put a scheme before an address that has none, and the name of a host may come before a port.
    const readings = scheme === undefined ? [] : [text];
    if (scheme === undefined || /^\d/.test(text.slice(scheme.length)))
      readings.push(`${this.#scheme}://${text.trim().replace(/^[\\/]+/, "")}`);
    let match = NO;
    for (const reading of readings) {
      const read = reader.uri(reading);
      if (read === undefined) return IN_DOUBT;
      if (reading === text && readings.length === 1 && read.spellings.every((spelling) => this.#isSure(spelling)))
        return YES;
      if (read.loose.some((spelling) => this.#loose.some((glob) => glob(spelling)))) match = IN_DOUBT;
    }
    return match;
  }

  /** A wildcard for a host takes names of hosts only: what other characters make of one differs from parser to parser. */
  #isSure(spelling: string): boolean {
    if (!this.#exact.some((glob) => glob(spelling))) return false;
    if (!this.#hasAnyHost) return true;
    const authority = authorityOf(spelling);
    return HOST.test(this.#pattern.includes("@") ? authority.slice(authority.lastIndexOf("@") + 1) : authority);
  }
}

/** More addresses in one text are in doubt. */
const MAX_URIS = 200;
const SEVERAL_URIS = /\S\s+\S|[,;|<>"'`]\s*[a-z][a-z0-9+.-]*:[\\/]/i;
const HOST = /^(?:[\p{L}\p{N}\p{M}._~-]*|\[[0-9a-f:.]+\])(?::\d*)?$/iu;

/** The addresses in a text that has more than one; undefined for a text that is one address. */
function severalUris(text: string): string[] | undefined {
  if (text.length > MAX_PATH || !SEVERAL_URIS.test(text)) return undefined;
  return [...new Set(text.split(/[\s,;|<>"'`]+/).filter((part) => /[.:/\\]/.test(part)))];
}

function authorityOf(uri: string): string {
  return /^[^:/]+:\/\/([^/]*)/.exec(uri)?.[1] ?? "";
}

interface UriReadings {
  readonly spellings: readonly string[];
  readonly loose: readonly string[];
}

function readUri(text: string): UriReadings | undefined {
  const spellings = text.length > MAX_PATH || CONTROL.test(text) ? undefined : spellingsOf(text);
  const composed = spellings?.map((spelling) => spelling.normalize("NFC"));
  return composed && { spellings: composed, loose: composed.map(fold).flatMap((folded) => [folded, `${folded}/`]) };
}

/**
 * A glob in which `*` and `?` stop at a slash and a segment `**` is any number of segments, none included. Never backtracks: runs
 * of segments between `**` are found leftmost.
 */
function segmentGlob(pattern: string, literal: boolean): Glob {
  if (literal || !/[*?]/.test(pattern)) {
    const bare = pattern.length > 1 && pattern.endsWith("/") ? pattern.slice(0, -1) : pattern;
    return (text) => text === pattern || text === bare;
  }
  const runs: Glob[][] = [[]];
  for (const segment of pattern.split("/")) {
    if (segment === "**") runs.push([]);
    else runs.at(-1)?.push(compileGlob(segment));
  }
  const prefix = pattern.slice(0, pattern.search(/[*?]/)).replace(/\/$/, "");
  return (text) => text.startsWith(prefix) && fitsRuns(runs, text.split("/"));
}

function fitsRuns(runs: readonly (readonly Glob[])[], segments: readonly string[]): boolean {
  const [first = [], ...others] = runs;
  const last = others.pop();
  const fits = (run: readonly Glob[], at: number): boolean =>
    at + run.length <= segments.length && run.every((glob, index) => glob(segments[at + index] ?? ""));
  if (last === undefined) return segments.length === first.length && fits(first, 0);
  const end = segments.length - last.length;
  if (end < first.length || !fits(first, 0) || !fits(last, end)) return false;
  let position = first.length;
  for (const run of others) {
    while (position + run.length <= end && !fits(run, position)) position += 1;
    if (position + run.length > end) return false;
    position += run.length;
  }
  return true;
}

function some(texts: Iterable<string>, matches: Glob): boolean {
  for (const text of texts) if (matches(text)) return true;
  return false;
}
