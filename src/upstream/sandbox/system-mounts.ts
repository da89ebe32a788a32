/** The read-only system that every program in a bubblewrap sandbox sees: programs and libraries, no secrets, no people. */
import { closeSync, existsSync, lstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { findCommand, isWithin, linkWithin, realPath } from "./named-mounts.ts";

export const SANDBOX_HOME = "/home/cage";
/** Inside a user namespace; without one the program sees the id that it has on this machine. */
const MAPPED_ID = 1000;

/** `namespace`: the hub's own user under another number. `root`: the mounts are root's, the program another user's. */
export type SandboxOwner =
  | { readonly kind: "namespace" }
  | { readonly kind: "root"; readonly uid: number; readonly gid: number };

const PROGRAM_FOLDERS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** Not /etc/ssl or /etc/pki as a whole: they hold private keys, which a hub that runs as root could read. */
const SYSTEM_SETTINGS = [
  "/etc/alternatives",
  "/etc/ca-certificates",
  "/etc/ca-certificates.conf",
  "/etc/crypto-policies",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
  "/etc/mime.types",
  "/etc/nsswitch.conf",
  "/etc/os-release",
  "/etc/pki/ca-trust/extracted",
  "/etc/pki/tls/cert.pem",
  "/etc/pki/tls/certs",
  "/etc/protocols",
  "/etc/services",
  "/etc/ssl/certs",
  "/etc/ssl/openssl.cnf",
  "/etc/timezone",
];

/** Whether every sandbox has it. */
export function isOfSystem(path: string): boolean {
  return ["/usr", "/nix/store", ...SYSTEM_SETTINGS].some((each) => isWithin(path, each));
}

/** A file whose text we make up; `text` goes in through a descriptor. */
interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

const HOSTS_FILE: GeneratedFile = { path: "/etc/hosts", text: "127.0.0.1 localhost\n::1 localhost\n" };

export function generatedFiles(network: "none" | "host", owner: SandboxOwner): readonly GeneratedFile[] {
  return network === "host" ? userFiles(owner) : [...userFiles(owner), HOSTS_FILE];
}

/** The program does not see the names and homes of the machine's users. The first line of an id counts. */
function userFiles(owner: SandboxOwner): GeneratedFile[] {
  const { uid, gid } = owner.kind === "root" ? owner : { uid: MAPPED_ID, gid: MAPPED_ID };
  return [
    {
      path: "/etc/passwd",
      text: `cage:x:${uid}:${gid}:cage:${SANDBOX_HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n`,
    },
    { path: "/etc/group", text: `cage:x:${gid}:\nnogroup:x:65534:\n` },
  ];
}

/** Unshared and given up whatever the config says. */
export function namespaceOptions(network: "none" | "host", owner: SandboxOwner): string[] {
  return [
    ...(owner.kind === "root" ? rootNamespaces(network) : userNamespaces(network)),
    ...["--hostname", "cage"],
    ...["--cap-drop", "ALL"],
    // For the step inside that changes the user, and gives up these as well.
    ...(owner.kind === "root"
      ? ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"].flatMap((each) => ["--cap-add", each])
      : []),
    // No --new-session: the hub starts it in a session without a terminal already, and bubblewrap's first process
    // inside, which is the last one there to end, must stay in the group that the hub waits for.
    "--die-with-parent",
    "--clearenv",
  ];
}

function userNamespaces(network: "none" | "host"): string[] {
  return [
    "--unshare-all",
    // Named again, because in --unshare-all it is left out silently where it is not to be had.
    "--unshare-user",
    ...(network === "host" ? ["--share-net"] : []),
    ...["--uid", String(MAPPED_ID), "--gid", String(MAPPED_ID)],
  ];
}

/** --unshare-all would make a user namespace, whose owner on this machine is root. */
function rootNamespaces(network: "none" | "host"): string[] {
  const all = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"];
  return network === "host" ? all : [...all, "--unshare-net"];
}

/**
 * Parts of /proc that speak of the machine. bubblewrap covers some itself, but decides by its own rights at that moment,
 * and those of a root's namespace do not show what its user may open.
 */
const READ_ONLY_PROC = [
  "acpi",
  "asound",
  "bus",
  "driver",
  "fs",
  "irq",
  "mtrr",
  "pressure",
  "scsi",
  "sys",
  "sysrq-trigger",
];
const HIDDEN_PROC = ["kcore", "keys", "key-users", "kmsg", "latency_stats", "sched_debug", "timer_list"];

function procMounts(): string[] {
  const there = (names: readonly string[]): string[] =>
    names.map((name) => `/proc/${name}`).filter((path) => existsSync(path));
  return [
    ...["--proc", "/proc"],
    ...there(READ_ONLY_PROC).flatMap((path) => ["--ro-bind", path, path]),
    ...there(HIDDEN_PROC).flatMap((path) => ["--ro-bind", "/dev/null", path]),
  ];
}

/** @param scratchBytes What each private folder may hold; half of the machine's memory if absent. */
export function systemMounts(
  network: "none" | "host",
  scratchBytes: number | undefined,
  owner: SandboxOwner,
): string[] {
  const size = scratchBytes === undefined ? [] : ["--size", String(scratchBytes)];
  const scratch = (path: string, mode: string): string[] => ["--perms", mode, ...size, "--tmpfs", path];
  const reached = network === "host" ? ["/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"] : [];
  return [
    ...["--ro-bind", "/usr", "/usr"],
    ...PROGRAM_FOLDERS.flatMap(programFolder),
    ...(existsSync("/nix/store")
      ? [...parentFolders("/nix/store", owner), "--ro-bind-try", "/nix/store", "/nix/store"]
      : []),
    // The real file: systemd's resolv.conf is a link into /run, which is not there.
    ...[...SYSTEM_SETTINGS, ...reached]
      .filter((path) => existsSync(path))
      .flatMap((path) => [...parentFolders(path, owner), "--ro-bind-try", realPath(path), path]),
    ...procMounts(),
    ...["--dev", "/dev"],
    ...scratch("/dev/shm", "1777"),
    ...["--remount-ro", "/dev"],
    ...scratch("/tmp", "1777"),
    ...[...parentFolders("/var/tmp", owner), "--symlink", "../tmp", "/var/tmp"],
    // It belongs to whoever makes the mounts, and only the program is there to use it.
    ...parentFolders(SANDBOX_HOME, owner),
    ...scratch(SANDBOX_HOME, owner.kind === "root" ? "0777" : "0700"),
  ];
}

/** The folders above a mount: bubblewrap would make some of them for the maker of the mounts alone, which is root. */
export function parentFolders(path: string, owner: SandboxOwner): string[] {
  if (owner.kind === "namespace") return [];
  const steps = path.split("/").slice(1, -1);
  return steps.flatMap((_, index) => ["--perms", "0755", "--dir", `/${steps.slice(0, index + 1).join("/")}`]);
}

/** On most systems these are links into /usr; on others folders of their own. */
function programFolder(path: string): string[] {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return [];
  return facts.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}

interface FoundProgram {
  /** As it is called; may be a link. */
  readonly path: string;
  /** To be seen read-only at the same place inside. */
  readonly mounts: readonly string[];
}

interface ProgramPlace {
  /** PATH. */
  readonly path: string | undefined;
  /** Relative commands start from here, as they do without a sandbox. */
  readonly cwd?: string | undefined;
  /** Real paths that the program may change: links and first lines of files there are not followed. */
  readonly writable: readonly string[];
}

/** Undefined if there is no such program. */
export function programMounts(command: string, { path, cwd, writable }: ProgramPlace): FoundProgram | undefined {
  const found = findCommand(command, path, cwd);
  if (found === undefined) return undefined;
  if (isChangeable(found, writable)) return { path: found, mounts: [found] };
  const mounts = new Set(mountsOf(found));
  // A script that begins with `#!/usr/bin/env node` needs that program too.
  const runner = interpreterOf(found);
  const foundRunner = runner === undefined ? undefined : findCommand(runner, path, cwd);
  if (foundRunner !== undefined && !isChangeable(foundRunner, writable)) {
    for (const mount of mountsOf(foundRunner)) mounts.add(mount);
  }
  return { path: found, mounts: [...mounts] };
}

/** Its file, or a link on the way to it. */
function isChangeable(program: string, writable: readonly string[]): boolean {
  const real = realPath(program);
  return writable.some((folder) => isWithin(real, folder)) || linkWithin(program, writable) !== undefined;
}

/**
 * Never the whole folder around `bin`: that of ~/bin or ~/.local/bin is full of other things. Of a place where npm
 * installs to, `bin` and `lib/node_modules`, by which npx works; of a project, its `node_modules`.
 */
function mountsOf(program: string): string[] {
  const real = realPath(program);
  const prefix = npmPrefix(program) ?? npmPrefix(real);
  if (prefix === undefined) {
    const [, packages] = /^(.+?\/node_modules)\//.exec(program) ?? /^(.+?\/node_modules)\//.exec(real) ?? [];
    return [...new Set([...(packages === undefined ? [] : [packages]), program, real])];
  }
  return [...new Set([join(prefix, "bin"), join(prefix, "lib", "node_modules"), program, real])];
}

function npmPrefix(program: string): string | undefined {
  const [, before] = /^(.+)\/lib\/node_modules\//.exec(program) ?? [];
  if (before !== undefined) return existsSync(join(before, "bin")) ? before : undefined;
  const folder = dirname(program);
  if (basename(folder) !== "bin") return undefined;
  const prefix = dirname(folder);
  return existsSync(join(prefix, "lib", "node_modules")) ? prefix : undefined;
}

function interpreterOf(program: string): string | undefined {
  const line = firstLine(program);
  const [, named, rest = ""] = /^#!\s*(\S+)\s*(.*)$/.exec(line) ?? [];
  if (named === undefined) return undefined;
  if (basename(named) !== "env") return named;
  return rest.split(/\s+/).find((word) => word !== "" && !word.startsWith("-") && !word.includes("="));
}

function firstLine(file: string): string {
  const buffer = Buffer.alloc(256);
  try {
    const handle = openSync(file, "r");
    try {
      const length = readSync(handle, buffer, 0, buffer.length, 0);
      return buffer.toString("latin1", 0, length).split("\n", 1)[0] ?? "";
    } finally {
      closeSync(handle);
    }
  } catch {
    // A program may be executable without being readable.
    return "";
  }
}
