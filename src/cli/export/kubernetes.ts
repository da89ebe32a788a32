/** A deployment as manifests for Kubernetes. */
import { createHash } from "node:crypto";
import { stringify } from "yaml";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { CONFIG_FILE, type Deployment, type DeploymentFile, GATEWAY, variablesOf } from "./deployment.ts";
import { CLAIM, CONFIG_MAP, gatewayPod, SECRET, serverPod } from "./kubernetes-pods.ts";

export function kubernetesFiles(deployment: Deployment): DeploymentFile[] {
  const { variables, servers } = deployment;
  const all = [...variables, ...servers.flatMap(variablesOf)];
  const keys = all.filter(({ needed }) => needed).map(({ name }) => name);
  const text = header([...new Set(keys)], deployment) + manifests(deployment).map(written).join("---\n");
  return [{ path: "toolcrib.yaml", text }];
}

function written(manifest: JsonObject): string {
  return stringify(manifest, { lineWidth: 0, aliasDuplicateObjects: false });
}

function manifests(deployment: Deployment): JsonObject[] {
  const { port, replicas, keepsHome, servers } = deployment;
  const config = `${JSON.stringify(deployment.config, null, 2)}\n`;
  // Another config is another template, so that applying it rolls the pods.
  const annotations = { "toolcrib/config": createHash("sha256").update(config).digest("hex").slice(0, 32) };
  return [
    { apiVersion: "v1", kind: "ConfigMap", metadata: metadata(CONFIG_MAP, GATEWAY), data: { [CONFIG_FILE]: config } },
    ...(keepsHome ? [claim()] : []),
    workload(GATEWAY, {
      replicas,
      // Two at once must not share one home.
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

/** Only the gateway reaches it, and it reaches nobody unless it may. */
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
    "Made by `toolcrib export kubernetes`. Nothing that looks like a secret is in it.",
    ...(image.includes("/")
      ? []
      : [`The image ${image} would come from Docker Hub: name one of your registry with --image.`]),
    ...(keys.length === 0 ? [] : [`kubectl create secret generic ${SECRET} ${literals}`]),
    ...(isCluster ? [`NATS with JetStream and PostgreSQL are not part of it: ${enginesOf(config)}`] : []),
  ];
  return lines.map((line) => `# ${line}\n`).join("");
}

function enginesOf({ cluster, store }: JsonObject): string {
  const url = isJsonObject(cluster) ? cluster["url"] : cluster;
  return `cluster ${JSON.stringify(url)}, store ${JSON.stringify(store)}.`;
}
