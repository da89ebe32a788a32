/** What a cluster needs beside its nodes, so that the compose file starts as it is. */
import type { JsonObject } from "../../model/json.ts";
import { writeReference } from "../../secrets/references.ts";
import { type Deployment, GATEWAY, variablesOf } from "./deployment.ts";
import { variablesIn } from "./references.ts";
import { VariableNames } from "./variable-names.ts";

const NATS = "nats";
const POSTGRES = "postgres";
/** Names of services and volumes that no server may have. */
export const ENGINES = [NATS, POSTGRES];
/** Only nodes and engines are on it: who may speak to NATS may speak for any node. */
export const ENGINE_NETWORK = "engines";

/** Names of secrets. */
export interface EnginePasswords {
  readonly nats: string;
  readonly postgres: string;
}

/** Of their own: what a server is given must not open an engine. */
export function enginePasswords({ variables, servers }: Deployment): EnginePasswords {
  const names = new VariableNames([...variables, ...servers.flatMap(variablesOf)].map(({ name }) => name));
  return { nats: names.next(["nats", "token"]), postgres: names.next(["postgres", "password"]) };
}

/** With the addresses of these engines. */
export function withEngines(deployment: Deployment, { nats, postgres }: EnginePasswords): Deployment {
  const config = {
    ...deployment.config,
    store: `postgres://${GATEWAY}:${writeReference("env", postgres)}@${POSTGRES}:5432/${GATEWAY}`,
    cluster: withAddress(deployment.config["cluster"], `nats://${writeReference("env", nats)}@${NATS}:4222`),
  };
  return { ...deployment, config, variables: variablesIn(config) };
}

function withAddress(cluster: unknown, url: string): unknown {
  if (typeof cluster !== "object" || cluster === null) return url;
  const { credentials: _credentials, ...rest } = cluster as JsonObject; // The schema knows no list here.
  return { ...rest, url };
}

export function engineServices({ nats, postgres }: EnginePasswords, hardened: JsonObject): JsonObject {
  return { [NATS]: natsService(nats, hardened), [POSTGRES]: postgresService(postgres, hardened) };
}

/** It takes a token as an argument or in its settings only; the arguments of a program are no secret. */
function natsScript(secret: string): string {
  return [
    "umask 077",
    `token="$(cat /run/secrets/${secret})"`,
    // An empty one would let everybody in.
    'test -n "$token"',
    `printf 'authorization: {token: "%s"}\\n' "$token" > /tmp/nats.conf`,
    "exec nats-server --config /tmp/nats.conf --jetstream --store_dir /data --http_port 8222",
  ].join(" && ");
}

function natsService(secret: string, hardened: JsonObject): JsonObject {
  return {
    image: "docker.io/library/nats:2.11-alpine",
    // A dollar sign would be read as a variable of the compose file.
    entrypoint: ["sh", "-c", natsScript(secret).replaceAll("$", "$$$$")],
    secrets: [secret],
    volumes: [{ type: "volume", source: NATS, target: "/data" }],
    networks: [ENGINE_NETWORK],
    healthcheck: {
      test: ["CMD", "wget", "-q", "-O", "-", "http://127.0.0.1:8222/healthz?js-enabled-only=true"],
      interval: "5s",
      timeout: "5s",
      retries: 6,
    },
    ...hardened,
  };
}

function postgresService(secret: string, hardened: JsonObject): JsonObject {
  return {
    image: "docker.io/library/postgres:17-alpine",
    user: "postgres",
    environment: { POSTGRES_USER: GATEWAY, POSTGRES_DB: GATEWAY, POSTGRES_PASSWORD_FILE: `/run/secrets/${secret}` },
    secrets: [secret],
    volumes: [{ type: "volume", source: POSTGRES, target: "/var/lib/postgresql/data" }],
    networks: [ENGINE_NETWORK],
    healthcheck: { test: ["CMD", "pg_isready", "-U", GATEWAY], interval: "5s", timeout: "5s", retries: 6 },
    ...hardened,
    tmpfs: ["/tmp", "/var/run/postgresql"],
  };
}
