/** Brings skills from wherever they are into a folder: a folder, an archive, a git repository, an npm package. */
import { pathToFileURL } from "node:url";
import { mkdir, mkdtemp, rm, stat, lstat, readdir } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join, resolve, isAbsolute } from "node:path";
import { ToolcribError, type ErrorCode } from "../../model/errors.ts";
import {
  printable,
  stopIfAborted,
  unpackTar,
  unpackZip,
  ARCHIVE_LIMITS,
  entryPath,
  tooLarge,
} from "./unpack-archive.ts";
import { isLoopback } from "../../base/network-address.ts";
import { runProgram } from "../../base/programs.ts";

export interface Fetched {
  /** Where to look for skills. */
  readonly dir: string;
  /** The source to fetch it from again, without credentials: an absolute path, a git address, `npm:…`. */
  readonly source: string;
  /** Which state of it this is, where the source can move: a commit, the name of a package's tarball. */
  readonly resolved?: string;
  /** The folder is a copy that `dispose` removes. */
  readonly temporary: boolean;
  dispose(): Promise<void>;
}

export interface FetchOptions {
  /** Where relative paths start. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  /** Called while something is fetched or unpacked: how much of it is there. */
  readonly onProgress?: FetchProgress | undefined;
}

export type FetchProgress = (done: number, of: number) => void;

/** Nothing that was fetched is run. The caller must dispose of the result, even after an error. */
export async function fetchSkills(source: string, options: FetchOptions): Promise<Fetched> {
  const text = source.trim();
  if (text === "") throw new ToolcribError("invalid_arguments", "The source is empty.");
  stopIfAborted(options.signal);
  const path = resolve(options.cwd, expandHome(text, options.env));
  const there = /^[a-z][a-z0-9+.-]+:/i.test(text) ? undefined : await stat(path).catch(() => undefined);
  if (there?.isDirectory() === true && !text.endsWith(".git")) return fromFolder(path);
  if (there?.isFile() === true) return fromFile(path, options);
  if (isNpmSource(text)) return fromNpm(parseNpmSource(text), options);
  if (isGitSource(text)) return fromGit(expandHome(text, options.env), options);
  throw unknownSource(text, path);
}

function fromFolder(dir: string): Fetched {
  return { dir, source: dir, temporary: false, dispose: async () => {} };
}

async function fromFile(file: string, { signal, onProgress }: FetchOptions): Promise<Fetched> {
  const name = basename(file).toLowerCase();
  if (name === "skill.md") return fromFolder(dirname(file));
  const isZip = /\.(?:zip|skill)$/.test(name);
  if (!isZip && !/\.(?:tgz|tar\.gz|tar)$/.test(name)) {
    const message = `${file} is neither a folder nor a .zip, .tgz, .tar.gz or .tar archive.`;
    throw new ToolcribError("invalid_arguments", message);
  }
  return inTemporaryFolder(async (dir) => {
    // A skill at the archive's root without a name gets that of the folder.
    const root = join(dir, basename(file).replace(/\.(?:zip|skill|tgz|tar\.gz|tar)$/i, "") || "skill");
    await mkdir(root);
    await (isZip ? unpackZip : unpackTar)(file, root, { signal, onProgress });
    return { dir: root, source: file };
  });
}

function fromGit(text: string, { cwd, ...options }: FetchOptions): Promise<Fetched> {
  const source = parseGitSource(text, cwd);
  return inTemporaryFolder(async (dir) => {
    const root = join(dir, repositoryName(source.url));
    await mkdir(root);
    const commit = await fetchGit(source, root, options);
    const wanted = join(root, ...source.subdir);
    if ((await stat(wanted).catch(() => undefined))?.isDirectory() !== true) {
      throw new ToolcribError("not_found", `${formatGitSource(source)} has no such folder.`);
    }
    return { dir: wanted, source: formatGitSource(source), resolved: commit };
  });
}

function repositoryName(url: string): string {
  const path = url.replace(/(?<!\/)\/+$/, "");
  const last =
    path
      .split(/[/:]/)
      .at(-1)
      ?.replace(/\.git$/, "") ?? "";
  return /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$/.test(last) ? last : "repository";
}

function fromNpm(spec: string, options: FetchOptions): Promise<Fetched> {
  return inTemporaryFolder(async (dir) => {
    const tarball = await fetchNpm(spec, dir, options);
    return { dir: join(dir, "files"), source: `npm:${spec}`, resolved: tarball };
  });
}

async function inTemporaryFolder(
  fill: (dir: string) => Promise<Pick<Fetched, "dir" | "source" | "resolved">>,
): Promise<Fetched> {
  const dir = await mkdtemp(join(tmpdir(), "toolcrib-skill-"));
  const dispose = (): Promise<void> => rm(dir, { recursive: true, force: true });
  try {
    return { ...(await fill(dir)), temporary: true, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function expandHome(path: string, env: NodeJS.ProcessEnv): string {
  const home = env["HOME"] || env["USERPROFILE"] || homedir();
  return path === "~" || /^~[/\\]/.test(path) ? join(home, path.slice(1)) : path;
}

function unknownSource(text: string, path: string): ToolcribError {
  const isBareName = /^[A-Za-z0-9][\w.-]*(?:@[\w.^~<>=*-]+)?$/.test(text);
  return new ToolcribError("not_found", `${printable(path)} does not exist.`, {
    hint: isBareName
      ? `For the npm package of that name write npm:${text}.`
      : "A source is a folder, a .zip or .tgz file, a git address, or npm:<package>.",
  });
}

// Fetches one commit of a repository with git, as plain files. Nothing in the repository is run.

const TIMEOUT_MS = 120_000;
const NULL_DEVICE = process.platform === "win32" ? "NUL" : "/dev/null";

/** Settings of the user that reach the repository (proxy, credential helper, ssh) stay. */
const GIT_SETTINGS = [
  `core.hooksPath=${NULL_DEVICE}`,
  // A link becomes a small file with its target's name, so that nothing leads out of the folder.
  "core.symlinks=false",
  // The same bytes, and so the same digests, on every system.
  "core.autocrlf=false",
  "core.fsmonitor=false",
  "core.askPass=",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  // As one pack, because git says how much of it has come.
  "fetch.unpackLimit=1",
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
async function fetchGit(
  source: GitSource,
  dir: string,
  { env, signal, onProgress }: Omit<FetchOptions, "cwd">,
): Promise<string> {
  const shown = formatGitSource(source);
  const run = (task: string, args: readonly string[]): Promise<string> =>
    runFetchProgram("git", [...GIT_SETTINGS.flatMap((setting) => ["-c", setting]), ...args], {
      cwd: dir,
      env: gitEnv(env, source),
      timeoutMs: TIMEOUT_MS,
      signal,
      task,
      mask: (text) => withoutCredentials(text, source.credentials),
      explain: explainGitFailure,
      onStderr: onProgress && ((text) => reportGitProgress(text, onProgress)),
    });
  await run("git init", ["init", "--quiet", "--template="]);
  // Not `clone`: a fetch takes branches, tags and commits alike, and makes no remote that keeps the address.
  await run(`git could not get ${shown}: fetching it`, [
    "fetch",
    onProgress === undefined ? "--quiet" : "--progress",
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
  await checkSize(dir);
  return commit;
}

/** The last percentage in what git prints, such as `Receiving objects:  45% (9/20)`. */
function reportGitProgress(text: string, onProgress: FetchProgress): void {
  const percent = [...text.matchAll(/Receiving objects: {1,4}(\d{1,3})%/g)].at(-1)?.[1];
  if (percent !== undefined) onProgress(Number(percent), 100);
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
async function checkSize(dir: string): Promise<void> {
  const limits = ARCHIVE_LIMITS;
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

const GIT_SCHEMES = ["https:", "http:", "ssh:", "file:"];
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
  return { ref: ref || undefined, subdir: subdir || undefined };
}

function parseUrl(address: string, location: GitLocation): [Pick<GitSource, "url" | "credentials">, GitLocation] {
  if (!URL.canParse(address)) throw invalidGitSource("The git address is not a valid URL.");
  const url = new URL(address);
  if (!GIT_SCHEMES.includes(url.protocol)) {
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
  const at = { ref: location.ref ?? browsed?.location.ref, subdir: location.subdir ?? browsed?.location.subdir };
  return [{ url: browsed?.url ?? url.href, credentials }, at];
}

function credentialsOf(url: URL): string {
  return `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
}

/** Addresses as browsers show them: https://github.com/owner/repo/tree/main/skills/notes. */
function browserLocation(url: URL): { url: string; location: GitLocation } | undefined {
  if (url.hostname !== "github.com") return undefined;
  const [, owner, repo, ref, subdir] = /^\/([^/]+)\/([^/]+)\/tree\/([^/]+)(?:\/(.+?))?\/?$/.exec(url.pathname) ?? [];
  if (owner === undefined || repo === undefined || ref === undefined) return undefined;
  const location = { ref: decodeURIComponent(ref), subdir: subdir && decodeURIComponent(subdir) };
  return { url: `${url.origin}/${owner}/${repo}`, location };
}

function withLocation(address: Pick<GitSource, "url" | "credentials">, { ref, subdir }: GitLocation): GitSource {
  // oxlint-disable-next-line no-control-regex
  if (ref !== undefined && (/^[-/+]|[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\.lock$/.test(ref) || ref.length > 200)) {
    throw invalidGitSource(
      "The text after # is not a branch, tag or commit.",
      "Write address#ref or address#ref:folder.",
    );
  }
  return { ...address, ref, subdir: subdir === undefined ? [] : entryPath(subdir) };
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

// Downloads a package with the npm program and unpacks it. None of its scripts run, and nothing is installed.

/** Unpacks into `dir`, which must be empty, and resolves with the name of the tarball, which includes the version. */
async function fetchNpm(spec: string, dir: string, { cwd, env, signal, onProgress }: FetchOptions): Promise<string> {
  const downloads = join(dir, "download");
  const cache = join(dir, "cache");
  const unpacked = join(dir, "files");
  for (const folder of [downloads, unpacked]) await mkdir(folder);
  const [program, first] = npmProgram();
  const args = [
    ...first,
    "pack",
    "--ignore-scripts",
    "--loglevel=error",
    "--no-update-notifier",
    "--no-progress",
    "--logs-max=0",
    "--workspaces=false",
    `--cache=${cache}`,
    `--pack-destination=${downloads}`,
    "--",
    spec,
  ];
  // In the user's folder, because a project's .npmrc says where its scope's registry is.
  await runFetchProgram(program, args, {
    cwd,
    env,
    timeoutMs: TIMEOUT_MS,
    signal,
    task: `Downloading npm:${spec}`,
    // The address of a registry may hold a password.
    mask: (text) => text.replace(/(:\/\/)[^/\s@]*@/g, "$1"),
    explain: explainNpmFailure,
  });
  const [tarball, ...more] = await readdir(downloads);
  if (tarball === undefined || more.length > 0) {
    throw new ToolcribError("not_found", `npm returned no package for ${JSON.stringify(spec)}.`);
  }
  await unpackTar(join(downloads, tarball), unpacked, { signal, onProgress });
  for (const folder of [downloads, cache]) await rm(folder, { recursive: true, force: true });
  return tarball;
}

/** Windows starts `npm.cmd` only through a shell, so there npm's own script is run instead. */
function npmProgram(): [string, string[]] {
  if (process.platform !== "win32") return ["npm", []];
  return [process.execPath, [join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js")]];
}

// Package specs: `npm:name`, `npm:@scope/name@^1.2`, `@scope/name`.

const PACKAGE_NAME = /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/i;
/** A version, range or tag. Addresses, files and aliases have a colon or a slash. */
const VERSION_RANGE = /^[0-9A-Za-z.^~<>=|*+ -]{1,100}$/;

function isNpmSource(source: string): boolean {
  return /^npm:/i.test(source) || /^@[^/\\]+\/[^/\\]+$/.test(source);
}

/** The spec as npm takes it. */
export function parseNpmSource(source: string): string {
  const spec = source.replace(/^npm:/i, "");
  const at = spec.indexOf("@", 1);
  const name = at === -1 ? spec : spec.slice(0, at);
  const range = at === -1 ? undefined : spec.slice(at + 1);
  if (!PACKAGE_NAME.test(name) || name.length > 214) {
    throw invalidNpmSource(`${JSON.stringify(name.slice(0, 100))} is not the name of an npm package.`);
  }
  if (range !== undefined && !VERSION_RANGE.test(range)) {
    throw invalidNpmSource(`The text after ${name}@ is not a version, range or tag.`);
  }
  return spec;
}

function invalidNpmSource(message: string): ToolcribError {
  return new ToolcribError("invalid_arguments", message, {
    hint: "Write npm:name or npm:@scope/name, with @version if needed.",
  });
}

// Runs git or npm and explains their failures.

interface FetchProgramOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onStderr?: ((text: string) => void) | undefined;
  /** The task, for messages: `git could not fetch https://…`. */
  readonly task: string;
  /** Takes out of the program's complaint what must not be shown. */
  readonly mask?: (text: string) => string;
  /** Finds the cause in what the program printed on stderr. */
  readonly explain: (stderr: string) => ProgramFailure;
}

const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

/** Resolves with stdout. */
async function runFetchProgram(
  program: string,
  args: readonly string[],
  { task, explain, mask = (text) => text, ...options }: FetchProgramOptions,
): Promise<string> {
  const end = await runProgram(program, args, { ...options, maxOutputBytes: MAX_OUTPUT_BYTES });
  switch (end.kind) {
    case "exited": {
      if (end.code === 0) return end.stdout;
      const { code, reason, hint } = explain(mask(end.stderr));
      throw new ToolcribError(code, `${task} failed: ${printable(reason) || `exit code ${end.code}`}`, { hint });
    }
    case "not_found":
      throw new ToolcribError("not_found", `The program ${program} was not found.`, {
        hint: `Install ${program}, or download the skill and install it from its folder.`,
      });
    case "timed_out":
      throw new ToolcribError("timeout", `${task} took longer than ${options.timeoutMs / 1000} seconds.`, {
        hint: "Try again, or download it and install it from its folder.",
      });
    case "aborted":
      throw new ToolcribError("cancelled", `${task} was interrupted.`);
    default: {
      const reason = end.kind === "killed" ? `it was ended by ${end.signal}` : `${program} could not be run to its end`;
      throw new ToolcribError("tool_error", `${task} failed: ${reason}.`);
    }
  }
}

interface ProgramFailure {
  readonly code: ErrorCode;
  /** Empty if the program said nothing. */
  readonly reason: string;
  readonly hint: string;
}

const OFFLINE_HINT =
  "Check the network and the proxy settings, then try again; or download it and install it from its folder.";

/** The first `fatal:` or `error:` says it; what follows is advice. */
export function explainGitFailure(stderr: string): ProgramFailure {
  const lines = linesOf(stderr).filter((line) => !/^(?:hint|warning):/i.test(line));
  // Over ssh git knows no more than that; the reason is in the lines before.
  const isVague = (line: string): boolean => /^fatal: could not read from remote repository/i.test(line);
  const telling = lines.find((line) => /^(?:fatal|error):/i.test(line) && !isVague(line)) ?? lines[0] ?? "";
  const reason = telling.replace(/^(?:fatal|error):\s*/i, "");
  // Quoted addresses and names may contain any words.
  const words = telling.replaceAll(/'[^']*'/g, "");
  if (NO_CONNECTION.test(words)) return { code: "server_unavailable", reason, hint: OFFLINE_HINT };
  if (NO_ACCESS.test(words)) {
    const hint = "Check the address, and that git on this machine may read it: try `git ls-remote <address>`.";
    return { code: "unauthorized", reason, hint };
  }
  if (/couldn't find remote ref|not our ref/i.test(words)) {
    return { code: "not_found", reason, hint: "Check the branch, tag or commit after # in the address." };
  }
  if (/not found|does not appear to be a git repository|does not exist/i.test(words)) {
    const hint = "Check the address. A private repository that you may not read looks the same.";
    return { code: "not_found", reason, hint };
  }
  return { code: "tool_error", reason, hint: "Try `git ls-remote <address>`, or download it and install its folder." };
}

const NO_CONNECTION =
  /could not resolve host|failed to connect|could ?n[o']t connect|connection (?:refused|timed out|reset|closed)|network is unreachable|no route to host|temporary failure in name resolution|operation timed out|empty reply|ssl|tls|certificate|returned error: 5\d\d/i;
const NO_ACCESS =
  /authentication failed|could not read (?:username|password)|permission denied|host key verification failed|returned error: 40[13]/i;

/** npm prints `code E404`, then an explanation, then advice, a stack and the path of its log. */
export function explainNpmFailure(stderr: string): ProgramFailure {
  const lines = linesOf(stderr)
    .filter((line) => /^npm (?:error|ERR!)/i.test(line))
    .map((line) => line.replace(/^npm (?:error|ERR!) ?/i, ""));
  const code = lines.map((line) => /^code (\S+)$/.exec(line)?.[1]).find((each) => each !== undefined);
  const words = lines.filter((line) => !NPM_NOISE.test(line)).map((line) => line.replace(NPM_TOPIC, "").trim());
  const explained = words.find((line) => line !== "" && !NPM_NOISE.test(line));
  const reason = [code, explained].filter((part) => part !== undefined).join(": ") || (linesOf(stderr)[0] ?? "");
  return { reason, ...npmErrorCode(code ?? "") };
}

/** Begins every line of an explanation: `404 Not Found - GET …`, `network request to …`. */
const NPM_TOPIC = /^(?:\d{3}|network|notarget|enoent|need auth)(?: |$)/;
const NPM_NOISE =
  /^(?:code|syscall|errno|path|dest) \S|^\s|^[{}]|^(?:log files|note that|a complete log|tarball, folder|if you are behind|this is a problem|in most cases)/i;

function npmErrorCode(code: string): Pick<ProgramFailure, "code" | "hint"> {
  if (/^(?:E404|ETARGET|ENOVERSIONS)$/.test(code)) {
    const hint = "Check name and version. A private package needs its registry and a login in .npmrc.";
    return { code: "not_found", hint };
  }
  if (/^(?:E401|E403|ENEEDAUTH)$/.test(code)) {
    return { code: "unauthorized", hint: "Log in to the registry with `npm login`, or check its token in .npmrc." };
  }
  if (NPM_NO_CONNECTION.test(code)) return { code: "server_unavailable", hint: OFFLINE_HINT };
  return { code: "tool_error", hint: "Try `npm pack <package>`, or download it and install it from its folder." };
}

const NPM_NO_CONNECTION =
  /^(?:ECONN\w+|ENOTFOUND|EAI_\w+|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPROTO|ENOTCACHED|E5\d\d|E429|ERR_SOCKET_TIMEOUT|FETCH_ERROR|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+|UNABLE_TO_\w+|\w*SELF_SIGNED_CERT\w*)$/;

function linesOf(text: string): string[] {
  return text.split(/[\r\n]+/).filter((line) => line.trim() !== "");
}
