/** Which texts name a git repository, and what they say about it. */
import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ToolcribError } from "../../model/errors.ts";
import { isLoopback } from "../../model/loopback.ts";
import { entryPath } from "./entry-path.ts";

export interface GitSource {
  /** Without a password or token. */
  readonly url: string;
  /** `user:password` of an http address, for the request's header; never shown and never kept. */
  readonly credentials?: string;
  /** A branch, tag or commit. */
  readonly ref?: string;
  /** Parts of the folder inside the repository. */
  readonly subdir: readonly string[];
}

const SCHEMES = ["https:", "http:", "ssh:", "file:"];
const SCP_FORM = /^(?:[A-Za-z0-9_.-]+@)(?:\[[0-9A-Fa-f:]+\]|[A-Za-z0-9_.-]+):(?!\/\/)./;

/** Whether a text is meant as a git address; whether it is a good one, `parseGitSource` says. */
export function looksLikeGit(source: string): boolean {
  const [address = ""] = source.split("#", 1);
  return (
    /^git\+/i.test(address) ||
    /^[a-z][a-z0-9+.-]*::/i.test(address) ||
    (/^[a-z][a-z0-9+.-]+:\/\//i.test(address) && !/^npm:/i.test(address)) ||
    SCP_FORM.test(address) ||
    address.endsWith(".git")
  );
}

/** Throws `invalid_arguments` for addresses that could run a program or that nobody encrypts. */
export function parseGitSource(source: string, cwd: string): GitSource {
  const hash = source.indexOf("#");
  const address = (hash === -1 ? source : source.slice(0, hash)).replace(/^git\+/i, "");
  const place = hash === -1 ? {} : parsePlace(source.slice(hash + 1));
  if (address.startsWith("-")) throw bad("A git address cannot begin with a dash.");
  // `ext::` runs a command, and `fd::` reads what this process has open.
  if (/^[a-z][a-z0-9+.-]*::/i.test(address)) {
    throw bad(`Git's transport "${address.slice(0, address.indexOf("::"))}::" is not used: it can run programs.`);
  }
  if (SCP_FORM.test(address) && !address.includes("://")) return withPlace({ url: address }, place);
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(address)) {
    return withPlace({ url: pathToFileURL(isAbsolute(address) ? address : resolve(cwd, address)).href }, place);
  }
  return withPlace(...parseUrl(address, place));
}

interface Place {
  readonly ref?: string;
  readonly subdir?: string;
}

/** `ref`, `ref:folder` or `:folder`. */
function parsePlace(text: string): Place {
  const colon = text.indexOf(":");
  const ref = colon === -1 ? text : text.slice(0, colon);
  const subdir = colon === -1 ? "" : text.slice(colon + 1);
  return { ...(ref === "" ? {} : { ref }), ...(subdir === "" ? {} : { subdir }) };
}

function parseUrl(address: string, place: Place): [Pick<GitSource, "url" | "credentials">, Place] {
  if (!URL.canParse(address)) throw bad("The git address is no valid URL.");
  const url = new URL(address);
  if (!SCHEMES.includes(url.protocol)) {
    throw bad(`Git addresses begin with https, ssh or file; "${url.protocol}" is not used.`);
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw bad(`${url.host} is addressed by plain http, so anybody on the way could change the skill.`, "Use https.");
  }
  const isHttp = url.protocol === "https:" || url.protocol === "http:";
  const credentials = isHttp && (url.username !== "" || url.password !== "") ? credentialsOf(url) : undefined;
  url.password = "";
  if (isHttp) url.username = "";
  const browsed = isHttp ? browserPlace(url) : undefined;
  const plain = browsed?.url ?? url.href;
  return [
    { url: plain, credentials },
    { ...browsed?.place, ...place },
  ];
}

function credentialsOf(url: URL): string {
  return `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
}

/** What people copy from the address bar: https://github.com/owner/repo/tree/main/skills/notes. */
function browserPlace(url: URL): { url: string; place: Place } | undefined {
  if (url.hostname !== "github.com") return undefined;
  const [, owner, repo, ref, subdir] = /^\/([^/]+)\/([^/]+)\/tree\/([^/]+)(?:\/(.+?))?\/?$/.exec(url.pathname) ?? [];
  if (owner === undefined || repo === undefined || ref === undefined) return undefined;
  return {
    url: `${url.origin}/${owner}/${repo}`,
    place: { ref: decodeURIComponent(ref), ...(subdir === undefined ? {} : { subdir: decodeURIComponent(subdir) }) },
  };
}

function withPlace(address: Pick<GitSource, "url" | "credentials">, { ref, subdir }: Place): GitSource {
  // oxlint-disable-next-line no-control-regex
  if (ref !== undefined && (/^[-/+]|[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\.lock$/.test(ref) || ref.length > 200)) {
    throw bad("What stands after # is no branch, tag or commit.", "Write address#ref or address#ref:folder.");
  }
  const parts = subdir === undefined ? [] : entryPath(subdir);
  return { ...address, ...(ref === undefined ? {} : { ref }), subdir: parts };
}

/** As it is shown and kept. */
export function writeGitSource({ url, ref, subdir }: GitSource): string {
  const place = `${ref ?? ""}${subdir.length === 0 ? "" : `:${subdir.join("/")}`}`;
  return place === "" ? url : `${url}#${place}`;
}

/** What was given is not repeated: it may hold a token. */
function bad(
  message: string,
  hint = "Give https://…, ssh://…, git@host:path or file://…, with #ref if needed.",
): ToolcribError {
  return new ToolcribError("invalid_arguments", message, { hint });
}
