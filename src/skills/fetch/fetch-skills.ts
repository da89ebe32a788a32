/** Brings skills from wherever they are into a folder: a folder, an archive, a git repository, an npm package. */
import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { fetchGit, formatGitSource, isGitSource, parseGitSource } from "./fetch-git.ts";
import { fetchNpm, isNpmSource, parseNpmSource } from "./fetch-npm.ts";
import { printable, stopIfAborted, unpackTar, unpackZip } from "./unpack-archive.ts";

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
}

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

async function fromFile(file: string, { signal }: FetchOptions): Promise<Fetched> {
  const name = basename(file).toLowerCase();
  if (name === "skill.md") return fromFolder(dirname(file));
  const unpack =
    name.endsWith(".zip") || name.endsWith(".skill")
      ? unpackZip
      : /\.(?:tgz|tar\.gz|tar)$/.test(name)
        ? unpackTar
        : undefined;
  if (unpack === undefined) {
    throw new ToolcribError(
      "invalid_arguments",
      `${file} is neither a folder nor a .zip, .tgz, .tar.gz or .tar archive.`,
    );
  }
  return inTemporaryFolder(async (dir) => {
    // A skill at the archive's root without a name gets that of the folder.
    const root = join(dir, basename(file).replace(/\.(?:zip|skill|tgz|tar\.gz|tar)$/i, "") || "skill");
    await mkdir(root);
    await unpack(file, root, { signal });
    return { dir: root, source: file };
  });
}

function fromGit(text: string, { cwd, env, signal }: FetchOptions): Promise<Fetched> {
  const source = parseGitSource(text, cwd);
  return inTemporaryFolder(async (dir) => {
    const root = join(dir, repositoryName(source.url));
    await mkdir(root);
    const commit = await fetchGit(source, root, { env, signal });
    const wanted = join(root, ...source.subdir);
    if ((await stat(wanted).catch(() => undefined))?.isDirectory() !== true) {
      throw new ToolcribError("not_found", `${formatGitSource(source)} has no such folder.`);
    }
    return { dir: wanted, source: formatGitSource(source), resolved: commit };
  });
}

function repositoryName(url: string): string {
  const last =
    url
      .replace(/(?<!\/)\/+$/, "")
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
