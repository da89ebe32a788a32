/** The read-only system that every program in a bubblewrap cage sees: programs and libraries, no secrets, no people. */
import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { realPath } from "./find-program.ts";

export const CAGE_HOME = "/home/cage";
/** Inside a user namespace; without one the program sees the id that it has on this machine. */
const MAPPED_ID = 1000;

/** `namespace`: the hub's own user under another number. `root`: the mounts are root's, the program another user's. */
export type CageOwner =
  | { readonly kind: "namespace" }
  | { readonly kind: "root"; readonly uid: number; readonly gid: number };

const PROGRAMS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** Not /etc/ssl or /etc/pki as a whole: they hold private keys, which a hub that runs as root could read. */
const SETTINGS = [
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

/** A file whose text we make up; `text` goes in through a descriptor. */
export interface MadeFile {
  readonly path: string;
  readonly text: string;
}

const HOSTS: MadeFile = { path: "/etc/hosts", text: "127.0.0.1 localhost\n::1 localhost\n" };

export function madeFiles(network: "none" | "host", owner: CageOwner): readonly MadeFile[] {
  return network === "host" ? people(owner) : [...people(owner), HOSTS];
}

/** Real names and homes of the machine's users are nobody's business in there. The first line of an id counts. */
function people(owner: CageOwner): MadeFile[] {
  const { uid, gid } = owner.kind === "root" ? owner : { uid: MAPPED_ID, gid: MAPPED_ID };
  return [
    {
      path: "/etc/passwd",
      text: `cage:x:${uid}:${gid}:cage:${CAGE_HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n`,
    },
    { path: "/etc/group", text: `cage:x:${gid}:\nnogroup:x:65534:\n` },
  ];
}

/** What is unshared and given up, whatever the config says. */
export function namespaceOptions(network: "none" | "host", owner: CageOwner): string[] {
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
const READ_ONLY = ["acpi", "asound", "bus", "driver", "fs", "irq", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger"];
const HIDDEN = ["kcore", "keys", "key-users", "kmsg", "latency_stats", "sched_debug", "timer_list"];

function processes(): string[] {
  const there = (names: readonly string[]): string[] =>
    names.map((name) => `/proc/${name}`).filter((path) => existsSync(path));
  return [
    ...["--proc", "/proc"],
    ...there(READ_ONLY).flatMap((path) => ["--ro-bind", path, path]),
    ...there(HIDDEN).flatMap((path) => ["--ro-bind", "/dev/null", path]),
  ];
}

/** @param scratchBytes What each private folder may hold; half of the machine's memory if absent. */
export function systemMounts(network: "none" | "host", scratchBytes: number | undefined, owner: CageOwner): string[] {
  const size = scratchBytes === undefined ? [] : ["--size", String(scratchBytes)];
  const scratch = (path: string, mode: string): string[] => ["--perms", mode, ...size, "--tmpfs", path];
  const reached = network === "host" ? ["/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"] : [];
  return [
    ...["--ro-bind", "/usr", "/usr"],
    ...PROGRAMS.flatMap(programFolder),
    ...(existsSync("/nix/store") ? [...wayTo("/nix/store", owner), "--ro-bind-try", "/nix/store", "/nix/store"] : []),
    // The real file: systemd's resolv.conf is a link into /run, which is not there.
    ...[...SETTINGS, ...reached]
      .filter((path) => existsSync(path))
      .flatMap((path) => [...wayTo(path, owner), "--ro-bind-try", realPath(path), path]),
    ...processes(),
    ...["--dev", "/dev"],
    ...scratch("/dev/shm", "1777"),
    ...["--remount-ro", "/dev"],
    ...scratch("/tmp", "1777"),
    ...[...wayTo("/var/tmp", owner), "--symlink", "../tmp", "/var/tmp"],
    // It belongs to whoever makes the mounts, and only the program is there to use it.
    ...wayTo(CAGE_HOME, owner),
    ...scratch(CAGE_HOME, owner.kind === "root" ? "0777" : "0700"),
  ];
}

/** The folders above a mount: bubblewrap would make some of them for the maker of the mounts alone, which is root. */
export function wayTo(path: string, owner: CageOwner): string[] {
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
