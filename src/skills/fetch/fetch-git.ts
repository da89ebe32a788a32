/** Fetches one commit of a repository with git, as plain files. Nothing in the repository is run. */
import { lstat, readdir, rm } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isLoopback } from "../../base/network-address.ts";
import { ToolcribError } from "../../model/errors.ts";
import { explainGitFailure, runFetchProgram } from "./run-fetch-program.ts";
import { ARCHIVE_LIMITS, type ArchiveLimits, entryPath, tooLarge } from "./unpack-archive.ts";

interface FetchGitOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  readonly limits?: ArchiveLimits;
}

const TIMEOUT_MS = 120_000;
const NULL_DEVICE = process.platform === "win32" ? "NUL" : "/dev/null";

/** Settings of the user that reach the repository (proxy, credential helper, ssh) stay. */
const SETTINGS = [
  `core.hooksPath=${NULL_DEVICE}`,
  // A link becomes a small file with its target's name, so that nothing leads out of the folder.
  "core.symlinks=false",
  // The same bytes, and so the same digests, on every system.
  "core.autocrlf=false",
  "core.fsmonitor=false",
  "core.askPass=",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  "gc.auto=0",
  "maintenance.auto=false",
];

/** Variables that would make git work on another repository than the new one, as inside a git hook. */
const REDIRECTING_VARIABLES = [
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_OBJECT_DIRECTORY",
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_NAMESPACE",
  "GIT_COMMON_DIR",
  "GIT_TEMPLATE_DIR",
  "GIT_CEILING_DIRECTORIES",
  "GIT_EXTERNAL_DIFF",
  "GIT_PROXY_COMMAND",
];

/** Puts the files into `dir`, which must be empty, and resolves with the commit. */
export async function fetchGit(
  source: GitSource,
  dir: string,
  { env, signal, limits = ARCHIVE_LIMITS }: FetchGitOptions,
): Promise<string> {
  const shown = formatGitSource(source);
  const run = (task: string, args: readonly string[]): Promise<string> =>
    runFetchProgram("git", [...SETTINGS.flatMap((setting) => ["-c", setting]), ...args], {
      cwd: dir,
      env: gitEnv(env, source),
      timeoutMs: TIMEOUT_MS,
      signal,
      task,
      mask: (text) => withoutCredentials(text, source.credentials),
      explain: explainGitFailure,
    });
  await run("git init", ["init", "--quiet", "--template="]);
  // Not `clone`: a fetch takes branches, tags and commits alike, and makes no remote that keeps the address.
  await run(`git could not get ${shown}: fetching it`, [
    "fetch",
    "--quiet",
    "--depth=1",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--update-shallow",
    "--",
    source.url,
    `+${source.ref ?? "HEAD"}:refs/toolcrib/fetched`,
  ]);
  await run(`git checkout of ${shown}`, ["checkout", "--quiet", "--force", "--detach", "refs/toolcrib/fetched", "--"]);
  const commit = (await run("git rev-parse", ["rev-parse", "HEAD"])).trim();
  await rm(join(dir, ".git"), { recursive: true, force: true });
  await checkSize(dir, limits);
  return commit;
}

function gitEnv(env: NodeJS.ProcessEnv, { url, credentials }: GitSource): NodeJS.ProcessEnv {
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !REDIRECTING_VARIABLES.includes(name)));
  return {
    ...kept,
    ...(credentials === undefined ? {} : authorization(env, url, credentials)),
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    SSH_ASKPASS: "",
    SSH_ASKPASS_REQUIRE: "never",
    GCM_INTERACTIVE: "never",
    // A host that is not known yet is refused instead of asked about.
    GIT_SSH_COMMAND: env["GIT_SSH_COMMAND"] ?? "ssh -o BatchMode=yes",
    GIT_ALLOW_PROTOCOL: url.startsWith("http://") ? "http" : "https:ssh:file",
    GIT_LFS_SKIP_SMUDGE: "1",
    LC_ALL: "C",
  };
}

/** Through the environment, because arguments are visible to every user of the machine. */
function authorization(env: NodeJS.ProcessEnv, url: string, credentials: string): NodeJS.ProcessEnv {
  const given = Number(env["GIT_CONFIG_COUNT"] ?? "0");
  const index = Number.isInteger(given) && given > 0 ? given : 0;
  return {
    GIT_CONFIG_COUNT: String(index + 1),
    [`GIT_CONFIG_KEY_${index}`]: `http.${new URL(url).origin}/.extraHeader`,
    [`GIT_CONFIG_VALUE_${index}`]: `Authorization: Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}

function withoutCredentials(text: string, credentials: string | undefined): string {
  const plain = text.replace(/(:\/\/)[^/\s@]*@/g, "$1");
  const [user = "", password = ""] = (credentials ?? "").split(":", 2);
  return [password, user].filter((part) => part.length > 3).reduce((all, part) => all.replaceAll(part, "***"), plain);
}

/** Git packs well and says nothing of sizes before, so this looks at what came. */
async function checkSize(dir: string, limits: ArchiveLimits): Promise<void> {
  let entries = 0;
  let bytes = 0;
  const folders = [dir];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      entries += 1;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) bytes += (await lstat(path)).size;
      else
        throw new ToolcribError(
          "blocked",
          `The repository contains ${JSON.stringify(entry.name)}, which is not a regular file.`,
        );
      if (entries > limits.entries) throw tooLarge(`The repository has more than ${limits.entries} files.`);
      if (bytes > limits.totalBytes) throw tooLarge(`The repository has more than ${limits.totalBytes} bytes.`);
    }
  }
}

// Git addresses.

interface GitSource {
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

/** Whether a text is meant as a git address; `parseGitSource` checks it. */
export function isGitSource(source: string): boolean {
  const [address = ""] = source.split("#", 1);
  return (
    /^git\+/i.test(address) ||
    /^[a-z][a-z0-9+.-]*::/i.test(address) ||
    (/^[a-z][a-z0-9+.-]+:\/\//i.test(address) && !/^npm:/i.test(address)) ||
    SCP_FORM.test(address) ||
    address.endsWith(".git")
  );
}

/** Throws `invalid_arguments` for addresses that could run a program or are not encrypted. */
export function parseGitSource(source: string, cwd: string): GitSource {
  const hash = source.indexOf("#");
  const address = (hash === -1 ? source : source.slice(0, hash)).replace(/^git\+/i, "");
  const location = hash === -1 ? {} : parseLocation(source.slice(hash + 1));
  if (address.startsWith("-")) throw invalidGitSource("A git address cannot begin with a dash.");
  // `ext::` runs a command, and `fd::` reads what this process has open.
  if (/^[a-z][a-z0-9+.-]*::/i.test(address)) {
    throw invalidGitSource(
      `Git's transport "${address.slice(0, address.indexOf("::"))}::" is not used: it can run programs.`,
    );
  }
  if (SCP_FORM.test(address) && !address.includes("://")) return withLocation({ url: address }, location);
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(address)) {
    return withLocation({ url: pathToFileURL(isAbsolute(address) ? address : resolve(cwd, address)).href }, location);
  }
  return withLocation(...parseUrl(address, location));
}

interface GitLocation {
  readonly ref?: string;
  readonly subdir?: string;
}

/** `ref`, `ref:folder` or `:folder`. */
function parseLocation(text: string): GitLocation {
  const colon = text.indexOf(":");
  const ref = colon === -1 ? text : text.slice(0, colon);
  const subdir = colon === -1 ? "" : text.slice(colon + 1);
  return { ...(ref === "" ? {} : { ref }), ...(subdir === "" ? {} : { subdir }) };
}

function parseUrl(address: string, location: GitLocation): [Pick<GitSource, "url" | "credentials">, GitLocation] {
  if (!URL.canParse(address)) throw invalidGitSource("The git address is not a valid URL.");
  const url = new URL(address);
  if (!SCHEMES.includes(url.protocol)) {
    throw invalidGitSource(`Git addresses begin with https, ssh or file; "${url.protocol}" is not used.`);
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw invalidGitSource(
      `${url.host} is addressed over plain http, so anyone on the network path could change the skill.`,
      "Use https.",
    );
  }
  const isHttp = url.protocol === "https:" || url.protocol === "http:";
  const credentials = isHttp && (url.username !== "" || url.password !== "") ? credentialsOf(url) : undefined;
  url.password = "";
  if (isHttp) url.username = "";
  const browsed = isHttp ? browserLocation(url) : undefined;
  const plain = browsed?.url ?? url.href;
  return [
    { url: plain, credentials },
    { ...browsed?.location, ...location },
  ];
}

function credentialsOf(url: URL): string {
  return `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
}

/** Addresses as browsers show them: https://github.com/owner/repo/tree/main/skills/notes. */
function browserLocation(url: URL): { url: string; location: GitLocation } | undefined {
  if (url.hostname !== "github.com") return undefined;
  const [, owner, repo, ref, subdir] = /^\/([^/]+)\/([^/]+)\/tree\/([^/]+)(?:\/(.+?))?\/?$/.exec(url.pathname) ?? [];
  if (owner === undefined || repo === undefined || ref === undefined) return undefined;
  return {
    url: `${url.origin}/${owner}/${repo}`,
    location: { ref: decodeURIComponent(ref), ...(subdir === undefined ? {} : { subdir: decodeURIComponent(subdir) }) },
  };
}

function withLocation(address: Pick<GitSource, "url" | "credentials">, { ref, subdir }: GitLocation): GitSource {
  // oxlint-disable-next-line no-control-regex
  if (ref !== undefined && (/^[-/+]|[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\.lock$/.test(ref) || ref.length > 200)) {
    throw invalidGitSource(
      "The text after # is not a branch, tag or commit.",
      "Write address#ref or address#ref:folder.",
    );
  }
  const parts = subdir === undefined ? [] : entryPath(subdir);
  return { ...address, ...(ref === undefined ? {} : { ref }), subdir: parts };
}

/** As it is shown and stored. */
export function formatGitSource({ url, ref, subdir }: GitSource): string {
  const location = `${ref ?? ""}${subdir.length === 0 ? "" : `:${subdir.join("/")}`}`;
  return location === "" ? url : `${url}#${location}`;
}

/** The message does not repeat the address: it may contain a token. */
function invalidGitSource(
  message: string,
  hint = "Give https://…, ssh://…, git@host:path or file://…, with #ref if needed.",
): ToolcribError {
  return new ToolcribError("invalid_arguments", message, { hint });
}
