/** Walks exported files and says which references lead nowhere. */
import { isJsonObject, type JsonObject } from "../../../src/model/json.ts";

export function at(value: unknown, ...path: (string | number)[]): unknown {
  let here = value;
  for (const step of path) {
    if (Array.isArray(here) && typeof step === "number") here = here[step];
    else here = isJsonObject(here) ? here[String(step)] : undefined;
  }
  return here;
}

export const objectAt = (value: unknown, ...path: (string | number)[]): JsonObject => {
  const found = at(value, ...path);
  return isJsonObject(found) ? found : {};
};

export const listAt = (value: unknown, ...path: (string | number)[]): unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

const LABEL = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function composeProblems(compose: JsonObject): string[] {
  const problems: string[] = [];
  const need = (kind: string, name: unknown, where: string): void => {
    if (!Object.hasOwn(objectAt(compose, kind), String(name))) problems.push(`${where}: no ${kind} ${String(name)}`);
  };
  for (const [name, service] of Object.entries(objectAt(compose, "services"))) {
    if (!LABEL.test(name)) problems.push(`${name} is no name`);
    for (const each of listAt(service, "networks")) need("networks", each, name);
    for (const each of listAt(service, "secrets")) need("secrets", each, name);
    for (const each of listAt(service, "configs")) need("configs", at(each, "source"), name);
    for (const each of Object.keys(objectAt(service, "depends_on"))) need("services", each, name);
    for (const each of listAt(service, "volumes")) {
      const source = at(each, "source");
      if (at(each, "type") === "volume" && source !== undefined) need("volumes", source, name);
    }
    for (const [other, { condition }] of Object.entries(objectAt(service, "depends_on")).map(
      ([key, value]) => [key, objectAt(value)] as const,
    )) {
      const hasCheck = at(compose, "services", other, "healthcheck") !== undefined;
      if (condition === "service_healthy" && !hasCheck) problems.push(`${name}: ${other} has no healthcheck`);
    }
  }
  return problems;
}

export function manifestProblems(manifests: readonly JsonObject[], secretKeys: ReadonlySet<string>): string[] {
  const problems: string[] = [];
  const named = (kind: string, name: unknown): boolean =>
    manifests.some((each) => each["kind"] === kind && at(each, "metadata", "name") === name);
  const pods = manifests
    .filter((each) => each["kind"] === "Deployment")
    .map((each) => objectAt(each, "spec", "template"));
  const selects = (selector: JsonObject): JsonObject[] =>
    pods.filter((pod) =>
      Object.entries(selector).every(([key, value]) => at(pod, "metadata", "labels", key) === value),
    );
  for (const manifest of manifests) {
    const where = `${String(manifest["kind"])} ${String(at(manifest, "metadata", "name"))}`;
    if (!LABEL.test(String(at(manifest, "metadata", "name")))) problems.push(`${where} is no name`);
    switch (manifest["kind"]) {
      case "Deployment": {
        const labels = objectAt(manifest, "spec", "template", "metadata", "labels");
        if (JSON.stringify(labels) !== JSON.stringify(at(manifest, "spec", "selector", "matchLabels"))) {
          problems.push(`${where}: its selector is not its pod's labels`);
        }
        problems.push(...podProblems(where, objectAt(manifest, "spec", "template", "spec"), { named, secretKeys }));
        break;
      }
      case "Service": {
        const chosen = selects(objectAt(manifest, "spec", "selector"));
        if (chosen.length !== 1) problems.push(`${where} selects ${chosen.length} pods`);
        const ports = listAt(chosen[0], "spec", "containers", 0, "ports").map((each) => at(each, "name"));
        for (const each of listAt(manifest, "spec", "ports")) {
          if (!ports.includes(at(each, "targetPort"))) problems.push(`${where}: no such port`);
        }
        break;
      }
      case "NetworkPolicy":
      case "PodDisruptionBudget": {
        const selector = at(manifest, "spec", "podSelector") ?? at(manifest, "spec", "selector");
        if (selects(objectAt(selector, "matchLabels")).length !== 1) problems.push(`${where} selects nothing`);
        break;
      }
      default:
    }
  }
  return problems;
}

interface Known {
  readonly named: (kind: string, name: unknown) => boolean;
  readonly secretKeys: ReadonlySet<string>;
}

function podProblems(where: string, pod: JsonObject, { named, secretKeys }: Known): string[] {
  const problems: string[] = [];
  const volumes = listAt(pod, "volumes");
  for (const volume of volumes) {
    const map = at(volume, "configMap", "name");
    if (map !== undefined && !named("ConfigMap", map)) problems.push(`${where}: no ConfigMap`);
    const claim = at(volume, "persistentVolumeClaim", "claimName");
    if (claim !== undefined && !named("PersistentVolumeClaim", claim)) problems.push(`${where}: no claim`);
  }
  for (const container of listAt(pod, "containers")) {
    const ports = listAt(container, "ports").map((each) => at(each, "name"));
    for (const mount of listAt(container, "volumeMounts")) {
      if (!volumes.some((volume) => at(volume, "name") === at(mount, "name"))) problems.push(`${where}: no volume`);
    }
    for (const variable of listAt(container, "env")) {
      const key = at(variable, "valueFrom", "secretKeyRef", "key");
      const isOptional = at(variable, "valueFrom", "secretKeyRef", "optional") === true;
      if (typeof key === "string" && !isOptional && !secretKeys.has(key)) problems.push(`${where}: no key ${key}`);
    }
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      const port = at(container, probe, "httpGet", "port") ?? at(container, probe, "tcpSocket", "port");
      if (port !== undefined && !ports.includes(port)) problems.push(`${where}: ${probe} has no port`);
    }
  }
  return problems;
}
