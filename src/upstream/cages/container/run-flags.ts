/** The flags of `podman run` and `docker run` that make a container a cage. Both programs take all of them. */
import type { CageSettings } from "../cage.ts";
import type { CageMount } from "../named-mounts.ts";
import type { ContainerLabels } from "./labels.ts";

export interface RunRequest {
  readonly kind: "podman" | "docker";
  readonly name: string;
  readonly labels: ContainerLabels;
  readonly settings: Pick<CageSettings, "network" | "memory" | "cpus" | "pids" | "port">;
  /** Outer folders first, so that one inside another is not covered by it. */
  readonly mounts: readonly CageMount[];
  readonly user: ContainerUser;
  /** Path of an env file; undefined if there is none. */
  readonly envFile: string | undefined;
  readonly envNames: readonly string[];
  /** All variables that the server itself brings. */
  readonly given: readonly string[];
  readonly cwd: string | undefined;
  /** From `containers.flags`: they come last, so that they win. */
  readonly flags: readonly string[];
}

export interface ContainerUser {
  readonly uid: number;
  readonly gid: number;
  /** Rootless podman: the user outside is the same one inside, so that files keep their owner. */
  readonly keepId: boolean;
}

/** Enough for a server with a few helpers and their threads, and an end to a fork bomb. */
const DEFAULT_PIDS = 256;

const PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "FTP_PROXY", "ALL_PROXY"];

export function runFlags(request: RunRequest): string[] {
  const { kind, name, labels, settings, mounts, user, envFile, envNames, given, cwd, flags } = request;
  const { network, memory, cpus, pids, port } = settings;
  return [
    "run",
    "--rm",
    // A container that is published talks over HTTP; any other over its stdin and stdout.
    ...(port === undefined ? ["--interactive"] : ["--publish", `127.0.0.1::${port}`]),
    ...["--name", name],
    ...Object.entries(labels).flatMap(([label, value]) => ["--label", `${label}=${value}`]),
    ...["--pull", "never"],
    // Its output comes to us; a second copy on the disk would only grow.
    ...["--log-driver", "none"],
    "--read-only",
    ...["--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777"],
    ...["--cap-drop", "ALL"],
    ...["--security-opt", "no-new-privileges"],
    ...(user.keepId ? ["--userns", "keep-id"] : []),
    ...["--user", `${user.uid}:${user.gid}`],
    ...withoutProxies(kind, given),
    // Publishing needs the engine's own network: on the network of this machine the port would not be on loopback only.
    ...(port === undefined ? ["--network", network] : []),
    // The same for memory and swap: no swap.
    ...(memory === undefined ? [] : ["--memory", `${memory}b`, "--memory-swap", `${memory}b`]),
    ...(cpus === undefined ? [] : ["--cpus", String(cpus)]),
    ...["--pids-limit", String(pids ?? DEFAULT_PIDS)],
    ...mounts.flatMap((mount) => ["--mount", mountOption(mount)]),
    ...(cwd === undefined ? [] : ["--workdir", cwd]),
    ...(given.includes("HOME") ? [] : ["--env", "HOME=/tmp"]),
    ...(envFile === undefined ? [] : ["--env-file", envFile]),
    ...envNames.flatMap((variable) => ["--env", variable]),
    ...flags,
  ];
}

/**
 * podman would hand the proxy settings of this machine on, docker those of its config file; either may hold credentials.
 * docker takes those that are named here for given, empty or not.
 */
function withoutProxies(kind: RunRequest["kind"], given: readonly string[]): string[] {
  if (kind === "podman") return ["--http-proxy=false"];
  const names = PROXIES.flatMap((name) => [name, name.toLowerCase()]);
  return names.filter((name) => !given.includes(name)).flatMap((name) => ["--env", `${name}=`]);
}

function mountOption({ path, source, writable }: CageMount): string {
  return ["type=bind", `source=${source}`, `target=${path}`, ...(writable ? [] : ["readonly"])].map(csv).join(",");
}

/** The value of `--mount` is a line of CSV. */
function csv(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
