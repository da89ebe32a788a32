/** Which well-known server an entry starts or reaches, and how sure that is. A file name says nothing: any program can have it. */
import { posix, win32 } from "node:path";
import { SESSION_ORIGIN, type ServerSpec } from "../../model/server-spec.ts";
import type { ServerIdentity } from "../../policy/well-known-servers.ts";

type Sure = NonNullable<ServerIdentity["sure"]>;

/**
 * Sure is only what the operator's own config takes from a public registry or reaches at the maker's host. All other names can
 * make a tool riskier, never more harmless.
 * @param ownName What the server calls itself.
 */
export function serverIdentity(spec: ServerSpec, ownName: string | null): ServerIdentity {
  const { command, args = [], url, env = {}, origin } = spec;
  const isOperators =
    spec.fromProject !== true &&
    spec.skill === undefined &&
    origin.dialect !== "skill" &&
    origin.file !== SESSION_ORIGIN.file &&
    !Object.keys(env).some((name) => CHANGES_PROGRAM.test(name));
  const words = [command ?? "", ...args].flatMap(namesIn);
  const hosts = [url ?? "", ...args].flatMap((text) => URL.parse(text)?.hostname ?? []);
  return {
    sure: isOperators ? (url === undefined ? started(command ?? "", args) : hostOf(url)) : undefined,
    claims: [...words, ...hosts, ...(ownName === null ? [] : [ownName])],
  };
}

/** Variables that decide from where a program is taken, or what else runs in it. */
const CHANGES_PROGRAM =
  /^(?:path|home|userprofile|appdata|xdg_.*|(?:npm|pnpm)_config_.*|(?:bun|uv|pip|pipx|ld|dyld)_.*|node_(?:options|path)|python(?:path|home|startup|userbase)|(?:docker|container)_(?:host|context|config))$/i;

function started(command: string, args: readonly string[]): Sure | undefined {
  const [first = "", second = "", ...others] = args;
  if (programName(command) === "cmd" && first.toLowerCase() === "/c") return started(second, others);
  const program = programName(command);
  if (program === "docker" || program === "podman") return first === "run" ? imageOf(args.slice(1)) : undefined;
  if (program === "node" || command === process.execPath) return packageOfScript(first);
  const runner = RUNNERS.find((each) => each.program === program && each.words.every((word, at) => args[at] === word));
  if (runner === undefined) return undefined;
  const found = packageOf(args.slice(runner.words.length), runner);
  if (found === undefined) return undefined;
  // A relay to a remote server, which is what it is about.
  if (runner.registry === "npm" && found.name === "mcp-remote") return hostOf(found.rest[0] ?? "");
  return { in: runner.registry, name: found.name };
}

/** Of what the system finds by its name or has at a usual place; a program elsewhere may be any. */
function programName(command: string): string | undefined {
  const [, name] =
    /^(?:\/(?:usr\/|usr\/local\/|opt\/homebrew\/)?bin\/)?([\w-]+)(?:\.(?:cmd|exe|ps1))?$/i.exec(command) ?? [];
  return name?.toLowerCase();
}

function hostOf(address: string): Sure | undefined {
  const url = URL.parse(address);
  return url?.protocol === "https:" ? { in: "hosts", name: url.hostname } : undefined;
}

interface Runner {
  readonly program: string;
  readonly words: readonly string[];
  readonly registry: "npm" | "pypi";
  /** It takes options of its own after the package, too. */
  readonly readsAll?: true;
}

const RUNNERS: readonly Runner[] = [
  { program: "npx", words: [], registry: "npm" },
  { program: "npm", words: ["exec"], registry: "npm", readsAll: true },
  { program: "npm", words: ["x"], registry: "npm", readsAll: true },
  { program: "pnpm", words: ["dlx"], registry: "npm", readsAll: true },
  { program: "pnpx", words: [], registry: "npm", readsAll: true },
  { program: "bunx", words: [], registry: "npm" },
  { program: "bun", words: ["x"], registry: "npm" },
  { program: "uvx", words: [], registry: "pypi" },
  { program: "uv", words: ["tool", "run"], registry: "pypi" },
  { program: "pipx", words: ["run"], registry: "pypi" },
];

/** Options that change nothing about which program runs. With any other one it is not sure. */
const HARMLESS_OPTIONS = new Set(["-y", "--yes", "-q", "--quiet", "--silent", "--prefer-online", "--prefer-offline"]);
/** Without what stands for a file, a repository or another package. */
const PACKAGE =
  /^((?:@[\w-]+\/)?[\w-][\w.-]*)(?:\[[\w,-]*\])?(?:(?:@|==)(?:[a-z]+|[\^~]?\d+(?:\.[\dx*]+)*(?:-[a-z]+[.\d]*)?))?$/;

function packageOf(
  words: readonly string[],
  { registry, readsAll }: Runner,
): { readonly name: string; readonly rest: readonly string[] } | undefined {
  let at = words.findIndex((word) => !HARMLESS_OPTIONS.has(word));
  const hasEnd = words[at] === "--";
  if (hasEnd) at++;
  // Its program of the same name.
  const from = registry === "pypi" && words[at] === "--from" ? nameOf(words[at + 1]) : undefined;
  if (from !== undefined) at += 2;
  const name = nameOf(words[at]);
  const rest = words.slice(at + 1);
  if (name === undefined || (from !== undefined && from !== name)) return undefined;
  return readsAll && !hasEnd && rest.some((word) => word.startsWith("-")) ? undefined : { name, rest };
}

function nameOf(text = ""): string | undefined {
  return text.startsWith("-") ? undefined : PACKAGE.exec(text)?.[1];
}

/** A script that lies in the folder of its package. */
function packageOfScript(script: string): Sure | undefined {
  const path = [posix, win32].find((each) => each.isAbsolute(script) && each.normalize(script) === script);
  if (path === undefined) return undefined;
  const name = packageFolder(script);
  return name === undefined ? undefined : { in: "npm", name };
}

function packageFolder(path: string): string | undefined {
  return /[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/@]+)[\\/](?!(?:.*[\\/])?node_modules[\\/])/
    .exec(path)?.[1]
    ?.replace("\\", "/");
}

const IMAGE = /^([a-z0-9][\w.-]*(?:\/[\w.-]+)+)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/;
const CONTAINER_FLAGS = /^(?:-[it]+|--rm|--init|--interactive|--tty)(?:=true)?$/;
/** Options with a value, and the values that leave the program of the image as it is. */
const CONTAINER_OPTIONS: Readonly<Record<string, (value: string) => boolean>> = {
  ...each(["-e", "--env"], (value) => !CHANGES_PROGRAM.test(value.replace(/=.*$/s, ""))),
  ...each(["-v", "--volume"], (value) => isForData(/:(\/[^:]*)(?::[\w,]+)?$/.exec(value)?.[1])),
  ...each(["--mount"], (value) => isForData(/(?:^|,)(?:dst|destination|target)=([^,]*)/.exec(value)?.[1])),
  ...each(["--name", "-l", "--label", "--network", "--net", "-p", "--publish", "-m", "--memory", "--cpus"], () => true),
};

function each<Value>(names: readonly string[], value: Value): Record<string, Value> {
  return Object.fromEntries(names.map((name) => [name, value]));
}

/** A place where images have no programs. */
function isForData(folder: string | undefined): boolean {
  return (
    folder !== undefined &&
    /^\/(?:projects|workspace|data|mnt|mcp|home|Users)(?:\/(?!\.\.?(?:\/|$))[^/]+)*\/?$/.test(folder)
  );
}

/** The first word that is neither an option nor its value. */
function imageOf(words: readonly string[]): Sure | undefined {
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (CONTAINER_FLAGS.test(word)) continue;
    if (!word.startsWith("-")) {
      const [, name] = IMAGE.exec(word) ?? [];
      return name === undefined ? undefined : { in: "images", name };
    }
    const [, option = word, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
    const isHarmless = Object.hasOwn(CONTAINER_OPTIONS, option) ? CONTAINER_OPTIONS[option] : undefined;
    if (isHarmless?.(value ?? words[++at] ?? "") !== true) return undefined;
  }
  return undefined;
}

/** The names that a word may stand for: a package, an image, a program, a Python module. */
function namesIn(word: string): string[] {
  const base = (word.split(/[\\/]/).at(-1) ?? "").replace(/\.(?:cmd|exe|ps1|[cm]?js|py)$/i, "");
  const names = [word, base, nameOf(word), IMAGE.exec(word)?.[1], packageFolder(word), base.replaceAll("_", "-")];
  return names.filter((name) => name !== undefined && name !== "") as string[];
}
