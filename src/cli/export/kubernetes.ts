/** A deployment as manifests for Kubernetes. */
import { createHash } from "node:crypto";
import { stringify } from "yaml";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
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
  SERVE,
  SERVER_USER,
  type Variable,
  variablesOf,
} from "./deployment.ts";

export function kubernetesFiles(deployment: Deployment): DeploymentFile[] {
  const { variables, servers } = deployment;
  const all = [...variables, ...servers.flatMap(variablesOf)];
  const keys = all.filter(({ needed }) => needed).map(({ name }) => name);
  const written = manifests(deployment).map((each) => stringify(each, { lineWidth: 0, aliasDuplicateObjects: false }));
  const text = header([...new Set(keys)], deployment) + written.join("---\n");
  return [{ path: "toolcrib.yaml", text }];
}

function manifests(deployment: Deployment): JsonObject[] {
  const { port, replicas, keepsHome, servers } = deployment;
  const config = `${JSON.stringify(deployment.config, null, 2)}\n`;
  // A changed config changes the template, so that applying it rolls the pods.
  const annotations = { "toolcrib/config": createHash("sha256").update(config).digest("hex").slice(0, 32) };
  return [
    { apiVersion: "v1", kind: "ConfigMap", metadata: metadata(CONFIG_MAP, GATEWAY), data: { [CONFIG_FILE]: config } },
    ...(keepsHome ? [claim()] : []),
    workload(GATEWAY, {
      replicas,
      // Two pods must not share one home.
      strategy: { type: keepsHome ? "Recreate" : "RollingUpdate" },
      template: { metadata: { labels: labels(GATEWAY), annotations }, spec: gatewayPod(deployment) },
    }),
    service(GATEWAY, port),
    ...(replicas === 1 ? [] : [disruptionBudget()]),
    ...servers.flatMap((server) => [
      workload(server.name, {
        replicas: 1,
        template: { metadata: { labels: labels(server.name) }, spec: serverPod(server) },
      }),
      service(server.name, server.port),
      networkPolicy(server.name, server.port, server.needsNetwork),
    ]),
  ];
}

function labels(component: string): JsonObject {
  return { "app.kubernetes.io/name": GATEWAY, "app.kubernetes.io/component": component };
}

function metadata(name: string, component: string): JsonObject {
  return { name, labels: labels(component) };
}

function workload(name: string, spec: JsonObject): JsonObject {
  const selector = { matchLabels: labels(name) };
  return { apiVersion: "apps/v1", kind: "Deployment", metadata: metadata(name, name), spec: { selector, ...spec } };
}

function service(name: string, port: number): JsonObject {
  const ports = [{ name: "http", port, targetPort: "http" }];
  return { apiVersion: "v1", kind: "Service", metadata: metadata(name, name), spec: { selector: labels(name), ports } };
}

function claim(): JsonObject {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: metadata(CLAIM, GATEWAY), spec };
}

function disruptionBudget(): JsonObject {
  const spec = { maxUnavailable: 1, selector: { matchLabels: labels(GATEWAY) } };
  return { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: metadata(GATEWAY, GATEWAY), spec };
}

/** Only the gateway can connect to it, and it can connect out only if it needs to. */
function networkPolicy(name: string, port: number, needsNetwork: boolean): JsonObject {
  const ingress = [{ from: [{ podSelector: { matchLabels: labels(GATEWAY) } }], ports: [{ port }] }];
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: metadata(name, name),
    spec: {
      podSelector: { matchLabels: labels(name) },
      policyTypes: ["Ingress", "Egress"],
      ingress,
      egress: needsNetwork ? [{}] : [],
    },
  };
}

function header(keys: readonly string[], { isCluster, config, image }: Deployment): string {
  const literals = keys.map((key) => `--from-literal=${key}=…`).join(" ");
  const lines = [
    "Created by `toolcrib export kubernetes`. It contains nothing that looks like a secret.",
    ...(image.includes("/")
      ? []
      : [`The image ${image} would be pulled from Docker Hub. Pass an image of your registry with --image.`]),
    ...(keys.length === 0 ? [] : [`kubectl create secret generic ${SECRET} ${literals}`]),
    ...(isCluster ? [`NATS with JetStream and PostgreSQL are not included: ${enginesOf(config)}`] : []),
  ];
  return lines.map((line) => `# ${line}\n`).join("");
}

function enginesOf({ cluster, store }: JsonObject): string {
  const url = isJsonObject(cluster) ? cluster["url"] : cluster;
  return `cluster ${JSON.stringify(url)}, store ${JSON.stringify(store)}.`;
}

const SECRET = "toolcrib-secrets";
const CONFIG_MAP = "toolcrib-config";
const CLAIM = "toolcrib-state";
const MIB = 1024 ** 2;

const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

function gatewayPod({ image, port, variables, keepsHome, stopSeconds }: Deployment): JsonObject {
  const home = keepsHome ? { persistentVolumeClaim: { claimName: CLAIM } } : { emptyDir: {} };
  const probe = (path: string, more: JsonObject): JsonObject => ({ httpGet: { path, port: "http" }, ...more });
  return {
    ...podOf(GATEWAY_USER),
    terminationGracePeriodSeconds: stopSeconds,
    containers: [
      {
        name: GATEWAY,
        image,
        command: [...SERVE],
        env: [
          { name: "TOOLCRIB_HOME", value: HOME },
          // npx keeps what it fetches in the home.
          { name: "HOME", value: HOME },
          ...variables.map(fromSecret),
        ],
        ports: [{ name: "http", containerPort: port }],
        startupProbe: probe("/healthz", { periodSeconds: 2, failureThreshold: 60 }),
        livenessProbe: probe("/healthz", { periodSeconds: 10, timeoutSeconds: 5 }),
        readinessProbe: probe("/readyz", { periodSeconds: 5, timeoutSeconds: 5 }),
        resources: { requests: { cpu: "100m", memory: "256Mi" } },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [
          { name: "config", mountPath: CONFIG_DIR, readOnly: true },
          { name: "home", mountPath: HOME },
          { name: "tmp", mountPath: "/tmp" },
        ],
      },
    ],
    volumes: [
      { name: "config", configMap: { name: CONFIG_MAP } },
      { name: "home", ...home },
      { name: "tmp", emptyDir: {} },
    ],
  };
}

function serverPod(server: DeployedServer): JsonObject {
  const { name, image, entrypoint, args, cwd, port, memory, cpus } = server;
  const limits = {
    ...(memory === undefined ? {} : { memory: quantity(memory) }),
    ...(cpus === undefined ? {} : { cpu: `${Math.ceil(cpus * 1000)}m` }),
  };
  const check = { tcpSocket: { port: "http" } };
  return {
    ...podOf(SERVER_USER),
    containers: [
      {
        name,
        image,
        ...(entrypoint === undefined ? {} : { command: [escaped(entrypoint)] }),
        ...(args.length === 0 ? {} : { args: args.map(expanded) }),
        ...(cwd === undefined ? {} : { workingDir: cwd }),
        env: [{ name: "HOME", value: "/tmp" }, ...envOf(server)],
        ports: [{ name: "http", containerPort: port }],
        livenessProbe: { ...check, initialDelaySeconds: 10, periodSeconds: 20 },
        readinessProbe: { ...check, periodSeconds: 5 },
        ...(Object.keys(limits).length === 0 ? {} : { resources: { limits } }),
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
      },
    ],
    volumes: [{ name: "tmp", emptyDir: {} }],
  };
}

function podOf(user: number): JsonObject {
  return {
    automountServiceAccountToken: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: user,
      runAsGroup: user,
      fsGroup: user,
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
}

/** Kubernetes expands variables in later variables and in arguments. */
function envOf(server: DeployedServer): JsonObject[] {
  const own = Object.entries(server.env).map(([name, text]): JsonObject => {
    const [only, ...more] = text;
    return typeof only === "object" && more.length === 0
      ? { ...fromSecret(only), name }
      : { name, value: expanded(text) };
  });
  const composed = [...Object.values(server.env).filter((text) => text.length > 1), ...server.args];
  const inside = new Map(variablesOf({ ...server, env: {}, args: composed }).map((each) => [each.name, each]));
  return [...[...inside.values()].map((each) => ({ ...fromSecret(each), name: partName(each) })), ...own];
}

function expanded(text: EnvText): string {
  return text.map((part) => (typeof part === "string" ? escaped(part) : `$(${partName(part)})`)).join("");
}

/** A prefix, because a variable of the same name may be composed from it. */
function partName({ name }: Variable): string {
  return `FROM_SECRET_${name}`;
}

function fromSecret({ name, needed }: Variable): JsonObject {
  return { name, valueFrom: { secretKeyRef: { name: SECRET, key: name, ...(needed ? {} : { optional: true }) } } };
}

function escaped(text: string): string {
  return text.replaceAll("$(", "$$$$(");
}

function quantity(bytes: number): string {
  return bytes % MIB === 0 ? `${bytes / MIB}Mi` : String(bytes);
}
