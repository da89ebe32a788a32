/** The pods of a deployment: neither root, nor able to become it, nor able to change what they are made of. */
import type { JsonObject } from "../../model/json.ts";
import {
  CONFIG_DIR,
  type DeployedServer,
  type Deployment,
  type EnvText,
  GATEWAY,
  GATEWAY_USER,
  HOME,
  SERVE,
  SERVER_USER,
  type Variable,
  variablesOf,
} from "./deployment.ts";

export const SECRET = "toolcrib-secrets";
export const CONFIG_MAP = "toolcrib-config";
export const CLAIM = "toolcrib-state";
const MIB = 1024 ** 2;

const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

export function gatewayPod({ image, port, variables, keepsHome, stopSeconds }: Deployment): JsonObject {
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

export function serverPod(server: DeployedServer): JsonObject {
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

/** Kubernetes puts variables into others that come after them, and into arguments. */
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

/** A variable of the same name may be made of it. */
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
