/**
 * Package runners: `npx`, `uvx` and the like fetch a program, which may take minutes, and then start it. Tells what they
 * fetch, and by their processes and their words how far they are and why they failed.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { stripVTControlCharacters } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { environmentValue } from "../../base/programs.ts";
import { ToolcribError } from "../../model/errors.ts";
import { type ProcessTable, systemProcessTable } from "./process-table.ts";

type Runner = "npm" | "pnpm" | "yarn" | "bun" | "uv" | "pipx";

/** One use of a package runner. */
export interface PackageRun {
  readonly runner: Runner;
  /** The packages that it fetches, as written; the first one is the program's. */
  readonly packages: readonly string[];
}

type Variables = Readonly<Record<string, string>>;

/** By program and first words. */
const RUNNERS: readonly (readonly [program: string, words: readonly string[], runner: Runner])[] = [
  ["npx", [], "npm"],
  ["npm", ["exec"], "npm"],
  ["npm", ["x"], "npm"],
  ["pnpx", [], "pnpm"],
  ["pnpm", ["dlx"], "pnpm"],
  ["yarn", ["dlx"], "yarn"],
  ["bunx", [], "bun"],
  ["bun", ["x"], "bun"],
  ["uvx", [], "uv"],
  ["uv", ["tool", "run"], "uv"],
  ["pipx", ["run"], "pipx"],
];

/** Options that name what is fetched, and others that take the following word. */
const PACKAGE_OPTIONS = new Set(["-p", "--package", "--from", "--spec"]);
const VALUE_OPTIONS = new Set(
  `--cache --cache-dir --default-index --directory --extra-index-url --index --index-url --loglevel --prefix --python
  --registry --userconfig --with`.split(/\s+/),
);

/** Undefined for any other command, or if it does not say what it fetches. */
export function packageRun(command: string, args: readonly string[]): PackageRun | undefined {
  const program = basename(command.replaceAll("\\", "/"))
    .replace(/\.(?:cmd|exe|ps1)$/i, "")
    .toLowerCase();
  const [first = "", second = "", ...others] = args;
  if (program === "cmd" && first.toLowerCase() === "/c") return packageRun(second, others);
  const found = RUNNERS.find(([name, words]) => name === program && words.every((word, index) => args[index] === word));
  if (found === undefined) return undefined;
  const [, words, runner] = found;
  const packages = packagesIn(args.slice(words.length), runner);
  return packages.length === 0 ? undefined : { runner, packages };
}

function packagesIn(words: readonly string[], runner: Runner): string[] {
  const packages: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    const [, option = word, value] = /^(--?[^=]+)=(.*)$/s.exec(word) ?? [];
    // In uv `-p` is the version of Python.
    const names = PACKAGE_OPTIONS.has(option) && !(runner === "uv" && option === "-p");
    if (names) packages.push(value ?? words[++index] ?? "");
    else if (VALUE_OPTIONS.has(option) || option === "-p") index += value === undefined ? 1 : 0;
    else if (word === "--") return packages.length > 0 ? packages : words.slice(index + 1, index + 2);
    else if (!word.startsWith("-")) return packages.length > 0 ? packages : [word];
  }
  return packages;
}

/**
 * Whether npm has the packages in the folder that npx starts them from. Undefined where that cannot be known: with another
 * runner, or if npm keeps its cache at a place that only its settings file names.
 */
export function isInstalled({ runner, packages }: PackageRun, env: Variables): boolean | undefined {
  if (runner !== "npm") return undefined;
  const cache = npmCache(env);
  if (cache === undefined) return undefined;
  // As libnpmexec names it.
  const key = createHash("sha512").update(packages.toSorted().join("\n")).digest("hex").slice(0, 16);
  const folder = join(cache, "_npx", key);
  // npm writes it when everything is in its place and install scripts have run.
  return existsSync(join(folder, "package.json")) && existsSync(join(folder, "node_modules"));
}

function npmCache(env: Variables): string | undefined {
  const set = Object.entries(env).find(([name]) => name.toLowerCase() === "npm_config_cache")?.[1];
  if (set !== undefined && set !== "") return set;
  const home = environmentValue(env, "HOME") ?? environmentValue(env, "USERPROFILE") ?? homedir();
  const settings = Object.entries(env).find(([name]) => name.toLowerCase() === "npm_config_userconfig")?.[1];
  if (/^\s*cache\s*=/m.test(readText(settings ?? join(home, ".npmrc")))) return undefined;
  if (process.platform !== "win32") return join(home, ".npm");
  return join(environmentValue(env, "LOCALAPPDATA") ?? join(home, "AppData", "Local"), "npm-cache");
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** npm says what it fetches, and that an attempt failed, at this level only; it tries again for over a minute. */
const NPM_LEVEL = "npm_config_loglevel";

/** The environment of a runner, so that it says what is needed here. What the user set stays. */
export function runnerEnvironment({ runner }: PackageRun, env: Variables): Record<string, string> {
  const isSet = Object.keys(env).some((name) => name.toLowerCase() === NPM_LEVEL);
  return runner !== "npm" || isSet ? { ...env } : { ...env, [NPM_LEVEL]: "http" };
}

/** A runner as it is started for a server. */
export interface StartedRunner {
  readonly run: PackageRun;
  /** Of the runner. */
  readonly env: Variables;
  /** Variables for the network that Toolcrib has and the runner does not get. */
  readonly withheld: readonly string[];
  /** How many processes there are between the one that is started and the runner: those of a sandbox. */
  readonly depth: number;
  /** How long it may take. */
  readonly limitMs: number;
}

interface RunnerWatchOptions extends StartedRunner {
  /** The process that was started. */
  readonly pid: number;
  readonly clock: Clock;
  readonly table?: ProcessTable | null;
  /** Null while it may not be fetching anything, or when it is over. */
  readonly onProgress: (text: string | null) => void;
  /** The runner has started the program, or it has not after all. */
  readonly onInstalling: (isInstalling: boolean) => void;
  readonly onFailure: (error: ToolcribError) => void;
}

const POLL_MS = 100;
/** `ps` takes long, and is run for every look. */
const SLOW_POLL_MS = 1000;
/** A cached program is started sooner, even on a slow machine; for others see `isInstalled`. */
const QUIET_MS = 1000;
const UNSURE_QUIET_MS = 3000;
/** Helpers, such as a Python that uv asks for its version, are gone by then. */
const MIN_PROGRAM_MS = 300;
/** A longer one is passed on in pieces. */
const MAX_LINE_LENGTH = 64 * 1024;

/** Follows a runner until its program runs. All times are real, as the processes are. */
export class RunnerWatch {
  readonly #options: RunnerWatchOptions;
  readonly #table: ProcessTable | null;
  readonly #isKnown: boolean | undefined;
  readonly #startedAt: number;
  readonly #timer: NodeJS.Timeout;
  readonly #stopLimit: () => void;
  readonly #decoder = new StringDecoder("utf8");
  #words = "";
  #hasProgram = false;
  #isInstalling = false;
  /** The registry has answered: what fails now may work at the next attempt. */
  #hasAnswered = false;
  #hasFetched = false;
  #note = "";
  #shown: string | null = null;
  /** When each process below the runner was seen first. */
  #seen = new Map<number, number>();

  constructor(options: RunnerWatchOptions) {
    const { run, env, limitMs, clock, table = systemProcessTable() } = options;
    this.#options = options;
    this.#table = table;
    this.#isKnown = options.depth > 0 ? undefined : isInstalled(run, env);
    this.#startedAt = performance.now();
    this.#timer = setInterval(() => this.#look(), process.platform === "linux" ? POLL_MS : SLOW_POLL_MS);
    this.#timer.unref();
    this.#stopLimit = clock.after(limitMs, () => this.#isInstalling && options.onFailure(this.#late()));
    this.#review();
  }

  /** Takes what it writes to stderr. Returns what is for people: not the lines that npm writes only for us. */
  read(chunk: Buffer): Buffer {
    const isOurs = this.#options.run.runner === "npm";
    const lines = (this.#words + this.#decoder.write(chunk)).split("\n");
    const last = lines.pop() ?? "";
    const kept = lines.filter((line) => !(this.#hear(stripVTControlCharacters(line).trim()) && isOurs));
    this.#words = last.length > MAX_LINE_LENGTH ? "" : last;
    return Buffer.from([...kept.map((line) => `${line}\n`), ...(this.#words === last ? [] : [last])].join(""));
  }

  /** The program has answered, or all is over. Returns words that were not a whole line yet. */
  stop(): Buffer {
    clearInterval(this.#timer);
    this.#stopLimit();
    this.#setInstalling(false);
    const rest = Buffer.from(this.#words + this.#decoder.end());
    this.#words = "";
    return rest;
  }

  /** Whether the runner has started the program, as far as it is known. */
  get hasProgram(): boolean {
    return this.#hasProgram;
  }

  /** Whether the line is one of npm's reports of single requests. */
  #hear(line: string): boolean {
    const attempt = readFailedAttempt(line);
    if (attempt === undefined) {
      const isReport = /^npm http (?:cache|fetch) /.test(line);
      this.#hasAnswered ||= /^npm http fetch \w+ [23]\d\d /.test(line);
      // Of a package that is there already npm asks only whether there is a newer one.
      this.#hasFetched ||= isReport && /\.tgz \S+ \(cache (?:miss|updated)\)$/.test(line);
      return isReport;
    }
    if (this.#hasProgram) return true;
    // An overloaded registry gets a second chance; npm itself would go on for more than a minute.
    const isOver = !attempt.isAnswer || attempt.attempt > 1;
    if (isRetryHopeless(attempt) || (isOver && !this.#hasAnswered)) {
      this.#options.onFailure(explainFailure(this.#options, [attempt.line]));
    } else {
      this.#note = ` (${attempt.code}; it tries again)`;
      this.#review();
    }
    return true;
  }

  #look(): void {
    this.#hasProgram = this.#isProgramRunning();
    this.#review();
  }

  /** A package that npm has is being installed only if npm fetches something all the same, such as a newer version. */
  #review(): void {
    const isFetching = this.#isKnown !== true || this.#hasFetched || this.#note !== "";
    this.#setInstalling(!this.#hasProgram && isFetching);
    if (this.#isInstalling) this.#show();
  }

  /** Without a table of processes, npm's folder has to do. */
  #isProgramRunning(): boolean {
    const { pid, depth, run, env } = this.#options;
    if (this.#table === null) return isInstalled(run, env) ?? true;
    let parents = [pid];
    for (let level = 0; level < depth; level++) parents = parents.flatMap((parent) => this.#childrenOf(parent));
    const now = performance.now();
    const children = parents.flatMap((parent) => this.#childrenOf(parent)).filter((child) => !isInstallScript(child));
    this.#seen = new Map(children.map((child) => [child, this.#seen.get(child) ?? now]));
    return [...this.#seen.values()].some((since) => now - since >= MIN_PROGRAM_MS);
  }

  #childrenOf(pid: number): number[] {
    return this.#table?.children(pid) ?? [];
  }

  #setInstalling(isInstalling: boolean): void {
    if (this.#isInstalling === isInstalling) return;
    this.#isInstalling = isInstalling;
    if (!isInstalling) this.#tell(null);
    this.#options.onInstalling(isInstalling);
  }

  #show(): void {
    const waited = performance.now() - this.#startedAt;
    const isSlow = waited >= (this.#isKnown === false ? QUIET_MS : UNSURE_QUIET_MS);
    if (!this.#hasFetched && this.#note === "" && !isSlow) return;
    this.#tell(`installing ${this.#options.run.packages.join(" ")} …${this.#note}`);
  }

  #tell(text: string | null): void {
    if (this.#shown === text) return;
    this.#shown = text;
    this.#options.onProgress(text);
  }

  #late(): ToolcribError {
    const { run, limitMs } = this.#options;
    const seconds = Math.round(limitMs / 1000);
    const text = `${run.runner} was still installing ${run.packages.join(" ")} after ${seconds} s.`;
    return new ToolcribError("server_unavailable", text, {
      hint: "Raise `installTimeout` of this server, or install the package beforehand.",
      details: { problem: "install_timeout", sent: false },
    });
  }
}

/** npm names the step in the environment; that of the program itself is `npx`. */
function isInstallScript(pid: number): boolean {
  const [, event] = /(?:^|\0)npm_lifecycle_event=([^\0]*)/.exec(readText(`/proc/${pid}/environ`)) ?? [];
  return event !== undefined && /^(?:pre|post)?(?:install|prepare)$/.test(event);
}

// Why a runner could not get a package, in its own words and ours.

/** Codes for programs, which stay the same: `problem` of a server, and of the details of an error. */
export type RegistryProblem =
  | "registry_certificate"
  | "registry_unreachable"
  | "registry_refused"
  | "package_not_found"
  | "install_timeout";

/** An attempt to reach the registry that failed; the runner will try again. */
interface FailedAttempt {
  /** Such as `ECONNREFUSED`, `503` or `SELF_SIGNED_CERT_IN_CHAIN`. */
  readonly code: string;
  /** From 1. */
  readonly attempt: number;
  /** Something answered there, and said that it cannot. */
  readonly isAnswer: boolean;
  /** As the runner said it. */
  readonly line: string;
}

const CERTIFICATE = /CERT|SELF[_ -]?SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|UnknownIssuer|\bERR_(?:TLS|SSL)/i;
const CONNECTION =
  /\b(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EPROTO|ECONNABORTED|ERR_SOCKET_TIMEOUT)\b/;

/** Undefined for a line that is about anything else. */
function readFailedAttempt(line: string): FailedAttempt | undefined {
  const [, code, attempt = "1"] =
    // npm
    /^npm http fetch \w+ \S+ (?=.* failed with (\S+))attempt (\d+) failed with /.exec(line) ??
    // pnpm
    /\bGET \S+ error \(([^)]+)\)\. Will retry\b/.exec(line) ??
    // pip
    /^WARNING: Retrying \(.*\) after connection broken by '(.*)'/.exec(line) ??
    [];
  // Whether there is a newer npm does not matter.
  if (code === undefined || /^npm http fetch GET \S+\/npm attempt/.test(line)) return undefined;
  return { code, attempt: Number(attempt), isAnswer: /^\d{3}$/.test(code), line };
}

/** A certificate does not become another one by waiting. */
function isRetryHopeless({ code }: FailedAttempt): boolean {
  return CERTIFICATE.test(code);
}

const MAX_QUOTED_LINES = 4;
const FAULTS: readonly (readonly [RegistryProblem, RegExp])[] = [
  ["registry_certificate", CERTIFICATE],
  // npm; uv and pip; bun
  [
    "package_not_found",
    /\bE404\b|\bETARGET\b|\bnot found in the package registry\b|\bNo matching distribution\b|\b404\b/,
  ],
  ["registry_refused", /\bE40[137]\b|\b40[137] (?:Unauthorized|Forbidden|Proxy Authentication Required)/i],
  ["registry_unreachable", CONNECTION],
  [
    "registry_unreachable",
    /\bE5\d\d\b|error sending request|dns error|tcp connect error|ConnectionRefused|FailedToOpenSocket|connection broken|Failed to fetch:/i,
  ],
];

/** Undefined if what it wrote is about anything else, such as an error of the program. */
export function registryFailure(runner: StartedRunner, stderr: string): ToolcribError | undefined {
  const lines = stderr.split("\n").filter((line) => isOfRunner(runner.run, line));
  return problemIn(lines) === undefined ? undefined : explainFailure(runner, lines);
}

/** Its errors, without where it wrote its log. */
function isOfRunner({ runner }: PackageRun, line: string): boolean {
  if (/complete log of this run|npm help/i.test(line)) return false;
  if (runner === "npm") return /^npm (?:error|ERR!)\s/.test(line);
  // uv draws its causes as a tree.
  return /^\s*(?:[×├╰│]|error\b|Caused by|ERR|WARN|fatal\b)/i.test(line);
}

function problemIn(lines: readonly string[]): RegistryProblem | undefined {
  const text = lines.join("\n");
  return FAULTS.find(([, pattern]) => pattern.test(text))?.[0];
}

function explainFailure(started: StartedRunner, said: readonly string[]): ToolcribError {
  const { runner, packages } = started.run;
  const lines = said.map((line) => line.replace(/^npm (?:error|ERR!|http fetch)\s+/, "").trim());
  const problem = problemIn(said) ?? "registry_unreachable";
  const quoted = [...new Set(lines.filter((line) => !/^(?:\d{3}|errno \S+|)$/.test(line)))]
    .slice(0, MAX_QUOTED_LINES)
    .join("\n");
  return new ToolcribError(
    "server_unavailable",
    `${runner} could not install ${packages.join(" ")}: ${WORDS[problem]}. It says:\n${quoted}`,
    {
      hint: registryHint(problem, started),
      details: { problem, sent: false, ...(HEALS.has(problem) ? {} : { permanent: true }) },
    },
  );
}

const WORDS: Readonly<Record<RegistryProblem, string>> = {
  registry_certificate: "it does not accept the certificate of its registry",
  registry_unreachable: "it cannot reach its registry",
  registry_refused: "its registry or a proxy refuses it",
  package_not_found: "its registry does not have it",
  install_timeout: "it took too long",
};

/** Those that may pass by themselves. */
const HEALS: ReadonlySet<RegistryProblem> = new Set(["registry_unreachable", "install_timeout"]);

const AUTHORITIES = { npm: ["NODE_EXTRA_CA_CERTS", "npm_config_cafile"], python: ["SSL_CERT_FILE"] };
const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "npm_config_https_proxy", "npm_config_proxy"];
const REGISTRIES = {
  npm: ["npm_config_registry", "BUN_CONFIG_REGISTRY"],
  python: ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"],
};

/** Names the settings that the program lacks, or has and that may be wrong. */
function registryHint(problem: RegistryProblem, { run, env, withheld }: StartedRunner): string {
  const kind = run.runner === "uv" || run.runner === "pipx" ? "python" : "npm";
  const [registry = ""] = REGISTRIES[kind];
  const state = (names: readonly string[], what: string): string => {
    const find = (among: readonly string[]): string | undefined =>
      among.find((name) => names.some((each) => each.toLowerCase() === name.toLowerCase()));
    const set = find(Object.keys(env));
    if (set !== undefined) return `check ${set}, ${what}`;
    const kept = find(withheld);
    if (kept !== undefined) return `${kept} is set for Toolcrib, and \`inherit\` does not pass it on`;
    return `${names[0]}, ${what}, is not set: if you need it, set it for Toolcrib or in \`env\` of the server`;
  };
  const sentence = (...parts: string[]): string => {
    const text = parts.join("; ");
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  };
  switch (problem) {
    case "registry_certificate":
      return sentence(state(AUTHORITIES[kind], "the file of your certificate authorities"));
    case "registry_unreachable":
      return sentence(state(PROXIES, "the proxy"), state(REGISTRIES[kind], "the registry"));
    case "registry_refused":
      return `Check the credentials of the registry and of the proxy, and ${registry}.`;
    case "package_not_found":
      return `Check the name and version of ${run.packages.join(" ")}, and ${registry}.`;
    case "install_timeout":
      return "Raise `installTimeout` of this server.";
  }
}
