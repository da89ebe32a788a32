/** Rules for `cluster`, and for what only a cluster has a use for. */
import { type ClusterConfig, clusterOf } from "../model/cluster-config.ts";
import type { Config } from "../model/config.ts";
import { isPlainText } from "../secrets/looks-like-secret.ts";
import { findReferences } from "../secrets/references.ts";
import type { ConfigPath } from "./config-path.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";

const IN_CODE = "library";

/** A store that is a reference is judged when it is known; one that a program gives the hub besides is seen only there. */
export function clusterProblems(
  document: Document,
  { cluster, store }: Pick<Config, "cluster" | "store">,
): Diagnostic[] {
  if (clusterOf(cluster) === undefined || (document.file === IN_CODE && store === undefined)) return [];
  if (store !== undefined && (/^postgres(?:ql)?:\/\//i.test(store) || findReferences(store).length > 0)) return [];
  const found = store === undefined ? "no store" : "a store that is a file of this machine";
  return [
    document.report(["cluster"], {
      severity: "error",
      code: "wrong_cluster",
      message: `found a cluster with ${found}; its nodes share their state in PostgreSQL`,
      hint: 'set "store" to a reference such as ${DATABASE_URL}, or to postgres://host/database',
    }),
  ];
}

/** No message holds a value. */
export function clusterWarnings(
  document: Document,
  { cluster: entry, mcpServers }: Pick<Config, "cluster" | "mcpServers">,
): Diagnostic[] {
  const cluster = clusterOf(entry);
  if (cluster !== undefined) return credentialWarnings(document, typeof entry === "string", cluster);
  return Object.entries(mcpServers)
    .filter(([, { replicas = 1, url }]) => replicas > 1 && url === undefined)
    .map(([id]) =>
      document.report(["mcpServers", id, "replicas"], {
        severity: "warning",
        code: "unused_key",
        message: "replicas has no effect without a cluster",
        hint: 'set "cluster", or remove it',
      }),
    );
}

function credentialWarnings(document: Document, isText: boolean, { url, credentials }: ClusterConfig): Diagnostic[] {
  const warn = (path: ConfigPath, message: string): Diagnostic =>
    document.report(path, {
      severity: "warning",
      code: "plain_credential",
      message,
      hint: "use a reference such as ${NAME} or secret://env/NAME",
    });
  const places: [string, ConfigPath][] =
    typeof url === "string"
      ? [[url, isText ? ["cluster"] : ["cluster", "url"]]]
      : url.map((each, index) => [each, ["cluster", "url", index]]);
  const inAddress = places.flatMap(([address, path]) => {
    const [, login] = /^[a-z]+:\/\/([^/?#]*)@/i.exec(address) ?? [];
    // NATS takes a token in the place of the user as well.
    const secret = login?.slice(login.indexOf(":") + 1);
    return secret !== undefined && isPlainText(secret) ? [warn(path, "a credential is written as plain text")] : [];
  });
  if (credentials === undefined || !credentials.includes("-----BEGIN")) return inAddress;
  return [...inAddress, warn(["cluster", "credentials"], "a credential is written as plain text")];
}
