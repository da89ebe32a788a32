/** What is to run, before it is written in the words of a platform. */
import type { JsonObject } from "../../model/json.ts";

export interface Deployment {
  /** Image of the gateway. */
  readonly image: string;
  /** The port that it listens at. */
  readonly port: number;
  readonly replicas: number;
  /** Whether its nodes are a cluster. */
  readonly isCluster: boolean;
  /** Whether its own folder has to outlive it. */
  readonly keepsHome: boolean;
  readonly stopSeconds: number;
  /** Its config, without any secret and with nothing that only this machine has. */
  readonly config: JsonObject;
  /** What the config takes from the environment. */
  readonly variables: readonly Variable[];
  /** Servers that run beside the gateway and are reached over HTTP. */
  readonly servers: readonly DeployedServer[];
}

export interface Variable {
  readonly name: string;
  /** Without it something does not work; it is treated as a secret. Others may be absent. */
  readonly needed: boolean;
}

export interface DeployedServer {
  readonly id: string;
  /** A DNS label that no other has. */
  readonly name: string;
  readonly image: string;
  /** Stands in for the image's own; undefined leaves that. */
  readonly entrypoint: string | undefined;
  readonly args: readonly EnvText[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, EnvText>>;
  readonly port: number;
  readonly needsNetwork: boolean;
  /** Folders of this machine. */
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly memory: number | undefined;
  readonly cpus: number | undefined;
  readonly pids: number | undefined;
}

/** A text in which variables stand for what is not written down. */
export type EnvText = readonly (string | Variable)[];

/** One file of the result. */
export interface DeploymentFile {
  readonly path: string;
  readonly text: string;
}

export const GATEWAY = "toolcrib";
/** User and group `node` of the image. */
export const GATEWAY_USER = 1000;
/** Nobody, in images of others. */
export const SERVER_USER = 65_534;
export const HOME = "/data";
export const CONFIG_DIR = "/config";
export const CONFIG_FILE = "toolcrib.json";
export const SERVE = ["toolcrib", "serve", "--config", `${CONFIG_DIR}/${CONFIG_FILE}`, "--log-format", "json"] as const;

/** All that stand in the texts of a server. */
export function variablesOf({ env, args }: DeployedServer): Variable[] {
  return [...Object.values(env), ...args].flatMap((text) => text.filter((part) => typeof part === "object"));
}
