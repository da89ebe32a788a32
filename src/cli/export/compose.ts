/** A deployment as a compose file. */
import { stringify } from "yaml";
import type { JsonObject } from "../../model/json.ts";
import { writeReference } from "../../secrets/secret-references.ts";
import {
  CONFIG_DIR,
  CONFIG_FILE,
  type DeployedServer,
  type Deployment,
  type DeploymentFile,
  type EnvText,
  GATEWAY,
  GATEWAY_USER,
  HOME,
  rewriteReferences,
  SERVE,
  SERVER_USER,
  VariableNames,
  variablesIn,
  variablesOf,
} from "./deployment.ts";

/** The gateway's network to the outside. Each server shares its own network only with the gateway. */
const OUTSIDE = "outside";

const HARDENED = {
  read_only: true,
  tmpfs: ["/tmp"],
  cap_drop: ["ALL"],
  security_opt: ["no-new-privileges:true"],
  restart: "unless-stopped",
};

export interface ComposeOptions {
  /** Whether the config is part of the compose file, or a file beside it. */
  readonly config: "inline" | "file";
}

/** The compose file first. */
export function composeFiles(planned: Deployment, options: ComposeOptions): DeploymentFile[] {
  const engines = planned.isCluster ? enginePasswords(planned) : undefined;
  const deployment = engines === undefined ? planned : withEngines(planned, engines);
  const secrets = deployment.variables.filter(({ needed }) => needed).map(({ name }) => name);
  const config = `${JSON.stringify(withSecretFiles(deployment.config), null, 2)}\n`;
  const inline = options.config === "file" ? undefined : config;
  const compose = composeFile(deployment, { secrets, engines, inline });
  const text =
    header(deployment, secrets, engines) + stringify(compose, { lineWidth: 0, aliasDuplicateObjects: false });
  const beside = options.config === "file" ? [{ path: CONFIG_FILE, text: config }] : [];
  return [{ path: "compose.yaml", text }, ...beside];
}

interface ComposeParts {
  readonly secrets: readonly string[];
  readonly engines: EnginePasswords | undefined;
  /** The gateway's config, if it is not a separate file. */
  readonly inline: string | undefined;
}

function composeFile(deployment: Deployment, { secrets, engines, inline }: ComposeParts): JsonObject {
  const { servers } = deployment;
  const volumes = [...(deployment.keepsHome ? ["state"] : []), ...(engines === undefined ? [] : ENGINES)];
  // Compose would interpret a dollar sign as a variable.
  const config = inline === undefined ? { file: `./${CONFIG_FILE}` } : { content: escaped(inline) };
  return {
    services: {
      [GATEWAY]: gateway(deployment, secrets),
      ...Object.fromEntries(servers.map((server) => [server.name, serverService(server)])),
      ...(engines === undefined
        ? {}
        : { [NATS]: natsService(engines.nats), [POSTGRES]: postgresService(engines.postgres) }),
    },
    networks: {
      [OUTSIDE]: {},
      ...Object.fromEntries(servers.map(({ name, needsNetwork }) => [name, needsNetwork ? {} : { internal: true }])),
      ...(engines === undefined ? {} : { [ENGINE_NETWORK]: { internal: true } }),
    },
    configs: { [GATEWAY]: config },
    ...(secrets.length === 0
      ? {}
      : { secrets: Object.fromEntries(secrets.map((name) => [name, { file: `./secrets/${name}` }])) }),
    ...(volumes.length === 0 ? {} : { volumes: Object.fromEntries(volumes.map((name) => [name, {}])) }),
  };
}

/** Secrets are files, so that they are in no environment. */
function withSecretFiles(config: JsonObject): JsonObject {
  return rewriteReferences(config, ({ name, needed }) =>
    needed ? `\${secret://file//run/secrets/${name}}` : undefined,
  );
}

function gateway(deployment: Deployment, secrets: readonly string[]): JsonObject {
  const { image, port, replicas, servers, isCluster, keepsHome, stopSeconds, variables } = deployment;
  const optional = variables.filter(({ needed }) => !needed).map(({ name }): [string, null] => [name, null]);
  const waitsFor = [
    ...servers.map(({ name }): [string, string] => [name, "service_started"]),
    ...(isCluster ? ENGINES.map((name): [string, string] => [name, "service_healthy"]) : []),
  ];
  const published = replicas === 1 ? `${port}` : `${port}-${port + replicas - 1}`;
  const check = `fetch('http://127.0.0.1:${port}/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))`;
  return {
    image,
    user: `${GATEWAY_USER}:${GATEWAY_USER}`,
    command: [...SERVE],
    // npx keeps what it fetches in the home.
    environment: { TOOLCRIB_HOME: HOME, HOME, ...Object.fromEntries(optional) },
    configs: [{ source: GATEWAY, target: `${CONFIG_DIR}/${CONFIG_FILE}` }],
    ...(secrets.length === 0 ? {} : { secrets: [...secrets] }),
    ports: [`127.0.0.1:${published}:${port}`],
    volumes: [keepsHome ? { type: "volume", source: "state", target: HOME } : { type: "volume", target: HOME }],
    networks: [OUTSIDE, ...servers.map(({ name }) => name), ...(isCluster ? [ENGINE_NETWORK] : [])],
    ...(waitsFor.length === 0
      ? {}
      : { depends_on: Object.fromEntries(waitsFor.map(([name, condition]) => [name, { condition }])) }),
    healthcheck: {
      test: ["CMD", "node", "-e", check],
      interval: "10s",
      timeout: "5s",
      retries: 3,
      start_period: "30s",
    },
    init: true,
    ...HARDENED,
    stop_grace_period: `${stopSeconds}s`,
    ...(replicas === 1 ? {} : { deploy: { replicas } }),
  };
}

function serverService(server: DeployedServer): JsonObject {
  const { name, image, entrypoint, args, cwd, env, read, write, memory, cpus, pids } = server;
  const variables = Object.entries(env).map(([key, text]): [string, string] => [key, interpolated(text)]);
  const mounts = [
    ...read.map((path) => ({ type: "bind", source: path, target: path, read_only: true })),
    ...write.map((path) => ({ type: "bind", source: path, target: path })),
  ];
  // Undefined values are not written.
  return {
    image,
    user: `${SERVER_USER}:${SERVER_USER}`,
    entrypoint: entrypoint === undefined ? undefined : [escaped(entrypoint)],
    command: args.length === 0 ? undefined : args.map(interpolated),
    working_dir: cwd,
    environment: { HOME: "/tmp", ...Object.fromEntries(variables) },
    networks: [name],
    volumes: mounts.length === 0 ? undefined : mounts,
    mem_limit: memory === undefined ? undefined : `${memory}b`,
    cpus,
    pids_limit: pids ?? 256,
    init: true,
    ...HARDENED,
  };
}

function interpolated(text: EnvText): string {
  return text.map((part) => (typeof part === "string" ? escaped(part) : `\${${part.name}:?is not set}`)).join("");
}

function escaped(text: string): string {
  return text.replaceAll("$", "$$$$");
}

function header({ servers }: Deployment, secrets: readonly string[], engines: EnginePasswords | undefined): string {
  const fromShell = servers.flatMap((server) => variablesOf(server).map(({ name }) => name));
  const lines = [
    "Created by `toolcrib export compose`. It contains nothing that looks like a secret.",
    ...(secrets.length === 0
      ? []
      : [
          `Put each secret into its own file: ${secrets.map((name) => `secrets/${name}`).join(", ")}`,
          "Containers read them as other users: chmod 644 the files, and chmod 700 the folder to keep others out.",
        ]),
    ...(engines === undefined
      ? []
      : [
          "Choose the secrets of NATS and PostgreSQL yourself, from letters and digits, because they become part of URLs:",
          ...Object.values(engines).map((name) => `  openssl rand -hex 32 > secrets/${name}`),
        ]),
    ...(fromShell.length === 0
      ? []
      : [`Set these in the environment or in .env: ${[...new Set(fromShell)].join(", ")}`]),
  ];
  return lines.map((line) => `# ${line}\n`).join("");
}

const NATS = "nats";
const POSTGRES = "postgres";
/** Service and volume names that no server may use. */
export const ENGINES = [NATS, POSTGRES];
/** Only nodes and engines are on it, because anyone who can reach NATS can impersonate a node. */
const ENGINE_NETWORK = "engines";

/** Names of secrets. */
interface EnginePasswords {
  readonly nats: string;
  readonly postgres: string;
}

/** Separate names, because the secrets of a server must not open an engine. */
function enginePasswords({ variables, servers }: Deployment): EnginePasswords {
  const names = new VariableNames([...variables, ...servers.flatMap(variablesOf)].map(({ name }) => name));
  return { nats: names.next(["nats", "token"]), postgres: names.next(["postgres", "password"]) };
}

function withEngines(deployment: Deployment, { nats, postgres }: EnginePasswords): Deployment {
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

/** NATS takes a token only as an argument or in its config, and arguments are visible to other processes. */
function natsScript(secret: string): string {
  return [
    "umask 077",
    `token="$(cat /run/secrets/${secret})"`,
    // An empty token would let anyone in.
    'test -n "$token"',
    `printf 'authorization: {token: "%s"}\\n' "$token" > /tmp/nats.conf`,
    "exec nats-server --config /tmp/nats.conf --jetstream --store_dir /data --http_port 8222",
  ].join(" && ");
}

function natsService(secret: string): JsonObject {
  return {
    image: "docker.io/library/nats:2.11-alpine",
    // Compose would interpret a dollar sign as a variable.
    entrypoint: ["sh", "-c", escaped(natsScript(secret))],
    secrets: [secret],
    volumes: [{ type: "volume", source: NATS, target: "/data" }],
    networks: [ENGINE_NETWORK],
    healthcheck: {
      test: ["CMD", "wget", "-q", "-O", "-", "http://127.0.0.1:8222/healthz?js-enabled-only=true"],
      interval: "5s",
      timeout: "5s",
      retries: 6,
    },
    ...HARDENED,
  };
}

function postgresService(secret: string): JsonObject {
  return {
    image: "docker.io/library/postgres:17-alpine",
    user: "postgres",
    environment: { POSTGRES_USER: GATEWAY, POSTGRES_DB: GATEWAY, POSTGRES_PASSWORD_FILE: `/run/secrets/${secret}` },
    secrets: [secret],
    volumes: [{ type: "volume", source: POSTGRES, target: "/var/lib/postgresql/data" }],
    networks: [ENGINE_NETWORK],
    healthcheck: { test: ["CMD", "pg_isready", "-U", GATEWAY], interval: "5s", timeout: "5s", retries: 6 },
    ...HARDENED,
    tmpfs: ["/tmp", "/var/run/postgresql"],
  };
}
