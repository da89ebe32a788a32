/** Gets one commit of a repository with the git program, as plain files. Nothing of the repository is run. */
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { ARCHIVE_LIMITS, type ArchiveLimits } from "./archive-limits.ts";
import { gitComplaint } from "./complaint.ts";
import { type GitSource, writeGitSource } from "./git-source.ts";
import { runProgram } from "./run-program.ts";
import { tooLarge } from "./unpacked-folder.ts";

interface FetchGitOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  readonly limits?: ArchiveLimits;
}

const TIMEOUT_MS = 120_000;
const EMPTY_FOLDER = process.platform === "win32" ? "NUL" : "/dev/null";

/** Of the user's own settings those stay that reach the repository (proxy, credential helper, ssh). */
const SETTINGS = [
  `core.hooksPath=${EMPTY_FOLDER}`,
  // A link becomes a small file with its target's name, so that nothing leads out of the folder.
  "core.symlinks=false",
  // The same bytes on every system, because digests are taken of them.
  "core.autocrlf=false",
  "core.fsmonitor=false",
  "core.askPass=",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  "gc.auto=0",
  "maintenance.auto=false",
];

/** Variables that would make git work on another repository than the new one, as inside a git hook. */
const MISLEADING = [
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
  const shown = writeGitSource(source);
  const run = (task: string, args: readonly string[]): Promise<string> =>
    runProgram("git", [...SETTINGS.flatMap((setting) => ["-c", setting]), ...args], {
      cwd: dir,
      env: gitEnv(env, source),
      timeoutMs: TIMEOUT_MS,
      signal,
      task,
      mask: (text) => withoutCredentials(text, source.credentials),
      explain: gitComplaint,
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
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !MISLEADING.includes(name)));
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
          `The repository holds ${JSON.stringify(entry.name)}, which is no plain file.`,
        );
      if (entries > limits.entries) throw tooLarge(`The repository has more than ${limits.entries} files.`);
      if (bytes > limits.totalBytes) throw tooLarge(`The repository holds more than ${limits.totalBytes} bytes.`);
    }
  }
}
