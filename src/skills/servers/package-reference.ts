/** Packages that hold a server: how they are written, how they are started, and how they are found again in a command. */

export interface PackageReference {
  readonly registry: "npm" | "pypi";
  /** Without a version. */
  readonly name: string;
  /** As the program that starts it takes it: with the version, if one was written. */
  readonly spec: string;
}

const NPM_NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[A-Za-z0-9~_][A-Za-z0-9._~-]*$/;
const NPM_VERSION = /^[A-Za-z0-9.^~<>=*|+_-]+$/;
const PYPI =
  /^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9,._ -]*\])?((?:==|>=|<=|~=|!=|@|<|>)[A-Za-z0-9.*+!_,<>=~-]+)?$/;
/** Reference servers that are on PyPI; npm packages of these names belong to others. */
const PYTHON_SERVERS = new Set(["mcp-server-fetch", "mcp-server-git", "mcp-server-sqlite", "mcp-server-time"]);

/** `@scope/name`, `name@1.2`, `npm:name`, `pypi:name`, `uvx name`, `npx -y name`. Undefined for anything else. */
export function parsePackage(text: string): PackageReference | undefined {
  const words = text.trim().split(/\s+/);
  if (words.length > 1) {
    const [command = "", ...args] = words;
    const found = launchedPackage(command, args);
    return found !== undefined && found.rest.length === 0 ? found.package : undefined;
  }
  const [, prefix, rest = ""] = /^(npm|node|pypi|python|uvx|pip|uv):(?!\/\/)(.+)$/i.exec(words[0] ?? "") ?? [];
  if (prefix === undefined) {
    const spec = words[0] ?? "";
    const python = pypiPackage(spec);
    return python !== undefined && PYTHON_SERVERS.has(python.name) ? python : npmPackage(spec);
  }
  return /^n/i.test(prefix) ? npmPackage(rest) : pypiPackage(rest);
}

function npmPackage(spec: string): PackageReference | undefined {
  const at = spec.indexOf("@", 1);
  const name = at === -1 ? spec : spec.slice(0, at);
  const version = at === -1 ? undefined : spec.slice(at + 1);
  if (spec.length > 256 || !NPM_NAME.test(name) || (version !== undefined && !NPM_VERSION.test(version)))
    return undefined;
  return { registry: "npm", name, spec };
}

function pypiPackage(spec: string): PackageReference | undefined {
  const name = spec.length > 256 ? undefined : PYPI.exec(spec)?.[1];
  // Names on PyPI have no case, and `-`, `_` and `.` are one.
  return name === undefined ? undefined : { registry: "pypi", name: name.toLowerCase().replace(/[-_.]+/g, "-"), spec };
}

/** The command that fetches and runs it. */
export function launchCommand(
  reference: PackageReference,
  args: readonly string[],
): { command: string; args: string[] } {
  return reference.registry === "npm"
    ? { command: "npx", args: ["-y", reference.spec, ...args] }
    : { command: "uvx", args: [reference.spec, ...args] };
}

interface Launcher {
  readonly registry: PackageReference["registry"];
  /** Words that follow the program before its options: `pnpm dlx`. */
  readonly words: readonly string[];
  /** Options whose value is the package itself. */
  readonly packageOptions: readonly string[];
  /** Options with another value. */
  readonly valueOptions: readonly string[];
}

const NPX = {
  registry: "npm",
  packageOptions: ["-p", "--package"],
  valueOptions: ["--registry", "--userconfig", "--prefix", "--cache"],
} as const;
const UVX = {
  registry: "pypi",
  packageOptions: ["--from", "--spec"],
  valueOptions: ["-p", "--python", "--with", "--index-url", "--index", "--refresh-package"],
} as const;

const LAUNCHERS: Readonly<Record<string, readonly Launcher[]>> = {
  npx: [{ ...NPX, words: [] }],
  pnpx: [{ ...NPX, words: [] }],
  bunx: [{ ...NPX, words: [] }],
  npm: ["exec", "x"].map((word) => ({ ...NPX, words: [word] })),
  pnpm: ["dlx", "exec"].map((word) => ({ ...NPX, words: [word] })),
  yarn: [{ ...NPX, words: ["dlx"] }],
  bun: [{ ...NPX, words: ["x"] }],
  uvx: [{ ...UVX, words: [] }],
  uv: [{ ...UVX, words: ["tool", "run"] }],
  pipx: [{ ...UVX, words: ["run"] }],
};

/** Where a program that fetches and runs packages gets them from; undefined for any other program. */
export function registryOf(command: string): PackageReference["registry"] | undefined {
  const program = programName(command);
  return Object.hasOwn(LAUNCHERS, program) ? LAUNCHERS[program]?.[0]?.registry : undefined;
}

/** The package that a command starts, and the arguments that are the server's own. */
export function launchedPackage(
  command: string,
  args: readonly string[],
): { package: PackageReference; rest: string[] } | undefined {
  const program = programName(command);
  // Clients on Windows write `cmd /c npx …`, because npx is a script there.
  if (program === "cmd" && args[0]?.toLowerCase() === "/c") return launchedPackage(args[1] ?? "", args.slice(2));
  const launchers = Object.hasOwn(LAUNCHERS, program) ? (LAUNCHERS[program] ?? []) : [];
  for (const launcher of launchers) {
    if (launcher.words.every((word, index) => args[index] === word))
      return afterOptions(launcher, args.slice(launcher.words.length));
  }
  return undefined;
}

function afterOptions(launcher: Launcher, args: readonly string[]): ReturnType<typeof launchedPackage> {
  const read = launcher.registry === "npm" ? npmPackage : pypiPackage;
  let named: string | undefined;
  let index = 0;
  for (; index < args.length; index++) {
    const [option, value] = splitOption(args[index] ?? "");
    if (!option.startsWith("-")) break;
    if (option === "--") {
      index++;
      break;
    }
    if (launcher.packageOptions.includes(option)) named ??= value ?? args[++index];
    else if (launcher.valueOptions.includes(option) && value === undefined) index++;
  }
  // With an option that names the package, the first word is a program in it.
  const reference = read(named ?? args[index] ?? "");
  return reference === undefined ? undefined : { package: reference, rest: args.slice(index + 1) };
}

function splitOption(arg: string): [string, string?] {
  const equals = arg.startsWith("--") ? arg.indexOf("=") : -1;
  return equals === -1 ? [arg] : [arg.slice(0, equals), arg.slice(equals + 1)];
}

/** `C:\Program Files\nodejs\npx.cmd` is npx. */
function programName(command: string): string {
  const base = command.slice(Math.max(command.lastIndexOf("/"), command.lastIndexOf("\\")) + 1).toLowerCase();
  return base.replace(/\.(?:cmd|exe|bat|ps1)$/, "");
}

export function isSamePackage(a: PackageReference, b: PackageReference): boolean {
  return a.registry === b.registry && a.name === b.name;
}

/** A short name for a server that has only a package: `@modelcontextprotocol/server-postgres` is `postgres`. */
export function nameFromPackage({ name }: PackageReference): string {
  const base = name.slice(name.indexOf("/") + 1);
  const short = base.replace(/^(?:mcp-)?server-|^mcp-/, "").replace(/(?:-mcp)?-server$|-mcp$/, "");
  return short === "" || short === "mcp" || short === "server" ? name.replace(/^@/, "").replace("/", "-") : short;
}
