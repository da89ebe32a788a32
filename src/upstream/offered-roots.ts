/**
 * Which roots a server is offered. A server may take roots for its folders and drop the one that its entry names, so what
 * happens to be a client's folder is not offered to servers of the config unless their entry asks for it.
 */
import { pathToFileURL } from "node:url";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Root } from "../model/protocol.ts";
import { SESSION_ORIGIN, type ServerSpec } from "../model/server-spec.ts";
import type { ClientSide } from "../model/session.ts";
import { absolutePath } from "../secrets/resolve-spec.ts";
import type { ConnectionDeps } from "./connection-deps.ts";

type Deps = Pick<ConnectionDeps, "workspaceRoots" | "env">;

/** A folder as the root that it is. */
export function rootOf(dir: string): Root {
  return { uri: pathToFileURL(dir).href, name: dir.split(/[\\/]/).findLast((part) => part !== "") ?? dir };
}

/** The client as this server may know it: with the roots that the server is offered and no others. */
export function withOfferedRoots(client: ClientSide, spec: ServerSpec, deps: Deps): ClientSide {
  const roots = fixedRoots(client, spec, deps);
  if (roots === undefined) return client;
  const { key, sample, elicit } = client;
  const { roots: _, ...others } = client.capabilities;
  return {
    key,
    get waiting() {
      return client.waiting === true;
    },
    capabilities: roots.length > 0 ? { ...others, roots: {} } : others,
    ...(roots.length > 0 ? { listRoots: async () => ({ roots: [...roots] }) } : {}),
    ...(sample === undefined ? {} : { sample }),
    ...(elicit === undefined ? {} : { elicit }),
  };
}

/**
 * Answers that a client of the modern era sends along by itself, with the offered roots in place of its own. No other answer
 * has `roots`.
 */
export function withOfferedAnswers(
  responses: JsonObject,
  client: ClientSide,
  spec: ServerSpec,
  deps: Deps,
): JsonObject {
  const roots = fixedRoots(client, spec, deps);
  if (roots === undefined) return responses;
  const answers = Object.entries(responses).map(([name, answer]) => {
    const isList = isJsonObject(answer) && answer["roots"] !== undefined;
    return [name, isList ? { ...answer, roots: [...roots] } : answer];
  });
  return Object.fromEntries(answers);
}

/** What a server is told before any call: whether it may ask for roots at all. */
export function offersFor(offers: Readonly<JsonObject>, { roots }: ServerSpec): Readonly<JsonObject> {
  if (roots === undefined) return offers;
  const { roots: _, ...others } = offers;
  if (roots === "session") return { ...others, roots: { listChanged: true } };
  return roots === false || roots.length === 0 ? others : { ...others, roots: {} };
}

/** Undefined where the client's own roots are the ones to offer. */
function fixedRoots(client: ClientSide, spec: ServerSpec, deps: Deps): readonly Root[] | undefined {
  const { workspaceRoots = [], env } = deps;
  const { roots, origin, baseDir } = spec;
  if (roots === false) return [];
  if (roots === "session") return undefined;
  if (roots !== undefined) return roots.map((root) => namedRoot(root, baseDir, env));
  if (origin.file === SESSION_ORIGIN.file) return undefined;
  if (client.rootsOnRequest === true) return workspaceRoots;
  const hasOwn = client.listRoots !== undefined && isJsonObject(client.capabilities["roots"]);
  return hasOwn || workspaceRoots.length === 0 ? undefined : workspaceRoots;
}

function namedRoot(root: string, baseDir: string, env: NodeJS.ProcessEnv): Root {
  // One letter before a colon is a drive.
  return /^[a-z][a-z0-9+.-]+:/i.test(root) ? { uri: root } : rootOf(absolutePath(root, baseDir, env));
}
