/** The read-only system that every program in a bubblewrap cage sees: programs and libraries, no secrets, no people. */
import { lstatSync, readlinkSync } from "node:fs";
import { realPath } from "./find-program.ts";

export const CAGE_HOME = "/home/cage";
const CAGE_ID = "1000";

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

/** Real names and homes of the machine's users are nobody's business in there. */
const PEOPLE: readonly MadeFile[] = [
  {
    path: "/etc/passwd",
    text: `cage:x:${CAGE_ID}:${CAGE_ID}:cage:${CAGE_HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n`,
  },
  { path: "/etc/group", text: `cage:x:${CAGE_ID}:\nnogroup:x:65534:\n` },
];
const HOSTS: MadeFile = { path: "/etc/hosts", text: "127.0.0.1 localhost\n::1 localhost\n" };

export function madeFiles(network: "none" | "host"): readonly MadeFile[] {
  return network === "host" ? PEOPLE : [...PEOPLE, HOSTS];
}

/** What is unshared and given up, whatever the config says. */
export function namespaceOptions(network: "none" | "host"): string[] {
  return [
    "--unshare-all",
    // Named again, because in --unshare-all it is left out silently where it is not to be had.
    "--unshare-user",
    ...(network === "host" ? ["--share-net"] : []),
    ...["--uid", CAGE_ID, "--gid", CAGE_ID],
    ...["--hostname", "cage"],
    ...["--cap-drop", "ALL"],
    // No --new-session: the hub starts it in a session without a terminal already, and bubblewrap's first process
    // inside, which is the last one there to end, must stay in the group that the hub waits for.
    "--die-with-parent",
    "--clearenv",
  ];
}

/** @param scratchBytes What each private folder may hold; half of the machine's memory if absent. */
export function systemMounts(network: "none" | "host", scratchBytes: number | undefined): string[] {
  const size = scratchBytes === undefined ? [] : ["--size", String(scratchBytes)];
  const scratch = (path: string, mode: string): string[] => ["--perms", mode, ...size, "--tmpfs", path];
  const reached = network === "host" ? ["/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"] : [];
  return [
    ...["--ro-bind", "/usr", "/usr"],
    ...PROGRAMS.flatMap(programFolder),
    ...["--ro-bind-try", "/nix/store", "/nix/store"],
    // The real file: systemd's resolv.conf is a link into /run, which is not there.
    ...[...SETTINGS, ...reached].flatMap((path) => ["--ro-bind-try", realPath(path), path]),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...scratch("/dev/shm", "1777"),
    ...["--remount-ro", "/dev"],
    ...scratch("/tmp", "1777"),
    ...["--symlink", "../tmp", "/var/tmp"],
    ...scratch(CAGE_HOME, "0700"),
  ];
}

/** On most systems these are links into /usr; on others folders of their own. */
function programFolder(path: string): string[] {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return [];
  return facts.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}
