/**
 * The URIs that one URI may be taken for. Servers read `FILE:///a`, `file:/a`, `/public/../a`, `%61` and a leading blank in
 * their own ways, so a rule that names a resource has to apply to every spelling of it.
 *
 * A spelling is worked out as WHATWG's parser, RFC 3986 and plain file servers would: blanks and line breaks stripped, scheme
 * and host in lower case, percent-encodings decoded (again where the result can be decoded again), dot segments resolved
 * before and after decoding, slashes collapsed, default ports, `localhost` and drive letters made equal, Unicode composed.
 * Upper and lower case of a path, links in a file system and paths that a server resolves against a folder of its own are
 * not covered: only the server knows them.
 */
import { isUtf8 } from "node:buffer";

/** Longer ones are not worked out, and neither are those that can be decoded more often, or read in more ways. */
const MAX_LENGTH = 8192;
const MAX_DECODINGS = 6;
const MAX_SPELLINGS = 100;

/** The beginning of a public URI that names its server; the server's own URI follows. */
export const SERVER_URI = /^toolcrib:\/\/servers\/([^/]+)\//;

/** Has one spelling only: nothing in it to decode, resolve or fold. Most URIs are like this. */
const PLAIN =
  /^(?:file:\/\/|(?!file:)[a-z][a-z0-9+.-]+:\/\/[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)*)(?:\/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)+$/;

/** The URI as written, and all URIs that it may be taken for. Undefined if there are too many. */
export function spellingsOf(uri: string): readonly string[] | undefined {
  if (uri.length > MAX_LENGTH) return undefined;
  if (PLAIN.test(uri)) return [uri];
  const prefix = SERVER_URI.exec(uri)?.[0] ?? "";
  const inner = spellingsOfOwn(uri.slice(prefix.length));
  return prefix === "" ? inner : inner?.map((spelling) => prefix + spelling);
}

function spellingsOfOwn(uri: string): readonly string[] | undefined {
  const spellings = new Set([uri]);
  const seen = new Set([uri]);
  let texts = [uri];
  for (let decodings = 0; texts.length > 0; decodings += 1) {
    if (decodings > MAX_DECODINGS) return undefined;
    const next: string[] = [];
    for (const reading of texts.flatMap(readingsOf)) {
      const paths = pathForms(reading);
      for (const spelling of [...canonicalForms(reading, paths), ...looserForms(reading, paths)]) {
        if (spelling.includes("\0") || spellings.size > MAX_SPELLINGS) return undefined;
        spellings.add(spelling);
        const decoded = trimUri(decodedAgain(spelling));
        if (decoded === spelling || seen.has(decoded)) continue;
        seen.add(decoded);
        next.push(decoded);
      }
    }
    texts = next;
  }
  return [...spellings];
}

/** Stand for the wildcards of a pattern while it is read as a URI: what no part of a URI changes. */
const ANY = "zq7any7qz";
const ONE = "zq7one7qz";

/**
 * A pattern on URIs as it reads once its literal part is canonical, without the pattern itself: `FILE:/Private/*` is also
 * `file:///Private/*`.
 */
export function canonicalPatterns(pattern: string): readonly string[] {
  if (pattern.length > MAX_LENGTH || PLAIN.test(pattern)) return [];
  const prefix = SERVER_URI.exec(pattern)?.[0] ?? "";
  const own = pattern.slice(prefix.length);
  const marked = own.replaceAll("*", ANY).replaceAll("?", ONE);
  const forms = readingsOf(marked)
    .flatMap((parts) => canonicalForms(parts, pathForms(parts)))
    // A wildcard that `..` took away would leave a pattern that means something else.
    .filter((form) => count(form, ANY) === count(marked, ANY) && count(form, ONE) === count(marked, ONE))
    .map((form) => prefix + form.replaceAll(ANY, "*").replaceAll(ONE, "?"));
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*(?=[*?])/.exec(pattern)?.[0] ?? "";
  const all = new Set([...forms, scheme.toLowerCase() + pattern.slice(scheme.length)]);
  all.delete(pattern);
  return [...all];
}

/** False for a pattern that matches no URI, whatever its spelling: `files__*`. */
export function couldNameUri(pattern: string): boolean {
  const wild = pattern.search(/[*?]/);
  const literal = wild < 0 ? pattern : pattern.slice(0, wild);
  return /[:/\\%\s]/.test(literal) || (wild >= 0 && /^[A-Za-z0-9+.-]*$/.test(literal));
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}

interface Parts {
  /** In lower case, without its colon; empty for a relative reference. */
  readonly scheme: string;
  /** Undefined where the path follows the scheme at once. */
  readonly authority: string | undefined;
  readonly path: string;
  /** With its `?`. */
  readonly query: string;
  /** With its `#`. */
  readonly fragment: string;
}

/**
 * The text as it is, as WHATWG's parser sees it, and a bare path as the file that it is to some servers. A backslash is a
 * slash to WHATWG and to Windows, and a character of a name to RFC 3986: that decides what `..` removes.
 */
function readingsOf(text: string): Parts[] {
  const trimmed = trimUri(text);
  const read = [trimmed];
  const href = URL.parse(trimmed)?.href;
  if (href !== undefined && href !== trimmed) read.push(href);
  if (/^(?:[\\/]|[A-Za-z]:[\\/])/.test(trimmed)) read.push(`file:///${trimmed}`);
  const asWritten = read.filter((each) => each.includes("\\")).map((each) => partsOf(each, "\\"));
  return [...read.map((each) => partsOf(each)), ...asWritten];
}

/** Removes what WHATWG's parser leaves out, and other blanks at both ends. */
function trimUri(text: string): string {
  const inner = text.replace(/[\t\n\r]+/g, "").trim();
  let start = 0;
  let end = inner.length;
  while (start < end && inner.charCodeAt(start) <= 0x20) start += 1;
  while (end > start && inner.charCodeAt(end - 1) <= 0x20) end -= 1;
  return inner.slice(start, end);
}

/** @param backslash What one in the path is taken for. */
function partsOf(text: string, backslash = "/"): Parts {
  const [prefix = ""] = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text) ?? [];
  const scheme = prefix.slice(0, -1).toLowerCase();
  const [beforeFragment, fragment] = splitAt(text.slice(prefix.length), "#");
  const [beforeQuery, query] = splitAt(beforeFragment, "?");
  const rest = beforeQuery.replaceAll("\\", backslash);
  if (scheme !== "" && rest.startsWith("//")) {
    const [authority, path] = splitAt(rest.slice(2), "/");
    return { scheme, authority: canonicalAuthority(scheme, authority), path, query, fragment };
  }
  // No authority and an empty one lead to the same path.
  if (scheme !== "" && rest.startsWith("/")) return { scheme, authority: "", path: rest, query, fragment };
  if (scheme === "file") return { scheme, authority: "", path: `/${rest}`, query, fragment };
  return { scheme, authority: undefined, path: rest, query, fragment };
}

/** Both halves, the second with the mark. */
function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at)];
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443", ws: "80", wss: "443", ftp: "21" };

function canonicalAuthority(scheme: string, authority: string): string {
  const decoded = decode(authority);
  const at = decoded.lastIndexOf("@") + 1;
  const [, name = "", port = ""] = /^(.*?)(?::(\d*))?$/s.exec(decoded.slice(at).toLowerCase()) ?? [];
  const host = withoutTrailing(name, ".");
  if (scheme === "file" && host === "localhost" && port === "") return "";
  return decoded.slice(0, at) + host + (port === "" || port === DEFAULT_PORTS[scheme] ? "" : `:${port}`);
}

/** The forms that mean the same URI in any reading. Where `..` meets `%2F` or `//`, readings differ. */
function canonicalForms(parts: Parts, paths: Iterable<string>): string[] {
  return Array.from(paths, (path) => render({ ...parts, path }));
}

function pathForms({ scheme, path }: Parts): Set<string> {
  const split = path.split("/");
  const resolved = withoutDots(
    split.map((segment) => (/^(?:\.|%2e){1,2}$/i.test(segment) ? decode(segment) : segment)),
  );
  const decoded = decode(path).replaceAll("\\", "/").split("/");
  const resolvedDecoded = decode(resolved.join("/")).replaceAll("\\", "/").split("/");
  const all = [
    withoutDots(collapsed(resolvedDecoded)),
    collapsed(withoutDots(decoded)),
    withoutDots(collapsed(decoded)),
  ];
  return new Set(all.map((segments) => (scheme === "file" ? withDriveLetter(segments) : segments).join("/")));
}

/**
 * Forms that lose a part which some servers do not look at: the fragment, credentials, of `file` the host and the query, a
 * slash at the end. And what a server reads that takes the host for the first folder.
 */
function looserForms(parts: Parts, paths: Iterable<string>): string[] {
  const { scheme, authority } = parts;
  const isFile = scheme === "file";
  const forms: Parts[] = [];
  let looser: Parts = { ...parts, fragment: "" };
  forms.push(looser);
  const host = isFile && authority !== undefined ? "" : authority?.slice(authority.lastIndexOf("@") + 1);
  forms.push((looser = { ...looser, authority: host }));
  if (isFile || parts.query === "?") forms.push((looser = { ...looser, query: "" }));
  const rendered = forms.flatMap((form) => canonicalForms(form, paths));
  for (const path of paths) {
    if (path.length > 1 && path.endsWith("/")) rendered.push(render({ ...looser, path: path.slice(0, -1) }));
    else if (path === "/" && looser.authority !== "") rendered.push(render({ ...looser, path: "" }));
  }
  if (authority !== undefined && authority !== "" && /(?:\.|%2e){2}/i.test(parts.path)) {
    const path = withoutDots(collapsed(`${authority}${decode(parts.path)}`.split(/[\\/]/))).join("/");
    rendered.push(render({ ...looser, authority: "", path: `/${path}` }), `${scheme}://${path}${looser.query}`);
  }
  return rendered;
}

function render({ scheme, authority, path, query, fragment }: Parts): string {
  const before = scheme === "" ? "" : `${scheme}:`;
  const host = authority === undefined ? "" : `//${authority}`;
  return `${before}${host}${path}${decode(query)}${decode(fragment)}`.normalize("NFC");
}

/** Segments of a path: the first is empty if it begins with a slash, the last if it ends with one. */
function withoutDots(segments: readonly string[]): string[] {
  const isAbsolute = segments.length > 1 && segments[0] === "";
  const kept: string[] = [];
  const given = isAbsolute ? segments.slice(1) : segments;
  for (const segment of given) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  const last = given.at(-1);
  if (last === "." || last === "..") kept.push("");
  if (!isAbsolute) return kept;
  return kept.length === 0 ? ["", ""] : ["", ...kept];
}

function collapsed(segments: readonly string[]): string[] {
  return segments.filter((segment, index) => segment !== "" || index === 0 || index === segments.length - 1);
}

function withDriveLetter(segments: readonly string[]): readonly string[] {
  const [root, drive = "", ...rest] = segments;
  return root === "" && /^[A-Za-z][:|]$/.test(drive) ? ["", `${drive.charAt(0).toUpperCase()}:`, ...rest] : segments;
}

function withoutTrailing(text: string, mark: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === mark) end -= 1;
  return text.slice(0, end);
}

/** These stay encoded, so that decoding once makes neither a query, a fragment, another encoding nor a wildcard of a name. */
const KEPT_ENCODED: Readonly<Record<string, string>> = { "%": "%25", "?": "%3F", "#": "%23", "*": "%2A" };

function decode(text: string): string {
  if (!/[%*]/.test(text)) return text;
  return text.replace(/(?:%[0-9a-f]{2})+|[%*]/gi, (run) =>
    run.length === 1 ? (KEPT_ENCODED[run] ?? run) : decodeRun(Buffer.from(run.replaceAll("%", ""), "hex")),
  );
}

/** Bytes that are not UTF-8 stay encoded. */
function decodeRun(bytes: Buffer): string {
  if (isUtf8(bytes))
    return bytes.toString("utf8").replace(/[%?#*]/g, (character) => KEPT_ENCODED[character] ?? character);
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const lead = bytes[at] ?? 0;
    const character = bytes.subarray(at, at + (lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4));
    const isWhole = isUtf8(character);
    const decoded = isWhole ? character.toString("utf8") : `%${lead.toString(16).toUpperCase()}`;
    text += KEPT_ENCODED[decoded] ?? decoded;
    at += isWhole ? character.length : 1;
  }
  return text;
}

/** The text that a further decoding would see. */
function decodedAgain(text: string): string {
  return text.replace(/%(?:25|3F|23)/g, (code) => (code === "%25" ? "%" : code === "%3F" ? "?" : "#"));
}
