/** Requests of a server to the client: which client answers, and which capabilities and roots are offered. */
import { pathToFileURL } from "node:url";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  CLIENT_CAPABILITIES_KEY,
  CLIENT_INFO_KEY,
  type Implementation,
  INVALID_PARAMS,
  INVALID_REQUEST,
  LOG_LEVEL_KEY,
  METHOD_NOT_FOUND,
  type Root,
  VERSION_KEY,
} from "../model/protocol.ts";
import { UI_CAPABILITY, UI_EXTENSION } from "../model/mcp-apps.ts";
import { SESSION_ORIGIN, type ServerSpec } from "../model/server-spec.ts";
import type { ClientSide } from "../model/source.ts";
import { absolutePath } from "../secrets/resolve-spec.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import { rpcRefusal } from "./rpc-error.ts";

/** Has one client answer one request of a server. What it throws carries the JSON-RPC error for the server. */
export async function answerServer(
  server: string,
  client: ClientSide,
  method: string,
  params: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  switch (method) {
    case "roots/list":
      // Roots may have been announced for other clients; this one has none.
      return client.listRoots === undefined ? { roots: [] } : client.listRoots({ server, signal });
    case "sampling/createMessage":
      if (client.sample === undefined) throw noHandler(method, "onSample");
      return client.sample(params, { server, signal });
    case "elicitation/create":
      if (client.elicit === undefined) throw noHandler(method, "onElicit");
      if (params["mode"] === "url") {
        const { elicitation } = client.capabilities;
        if (!isJsonObject(elicitation) || elicitation["url"] === undefined) {
          throw rpcRefusal(INVALID_PARAMS, "Elicitation by url is not supported here; only forms are.");
        }
      }
      return client.elicit(params, { server, signal });
    default:
      throw rpcRefusal(METHOD_NOT_FOUND, `Toolcrib does not know the method ${method}.`);
  }
}

function noHandler(method: string, option: string): ToolcribError {
  return rpcRefusal(
    METHOD_NOT_FOUND,
    `No one can answer ${method}: the caller's client cannot, and the session has no ${option} callback.`,
    `Use a client that answers ${method}; in a program, give ${option}.`,
  );
}

/**
 * A legacy server's request names no call of ours. The stream it came on may; otherwise the one client with calls in
 * flight is meant. Between several it is unclear, and a guess could hand one user's data to another.
 */
export function clientFor(
  related: ClientSide | undefined,
  callers: readonly ClientSide[],
  hubClient: ClientSide,
): ClientSide {
  if (related !== undefined) return related;
  if (callers.length > 1) {
    throw rpcRefusal(
      INVALID_REQUEST,
      `${callers.length} sessions share this connection and have calls in flight, so it is unclear which one is asked. ` +
        `Set isolation: "session" for this server.`,
    );
  }
  return callers[0] ?? hubClient;
}

/**
 * The same for every hub and command: servers choose by it what they list, and a list that depended on the command would
 * look changed to the pins. Whoever cannot answer refuses when asked.
 */
export const ALL_CAPABILITIES: Readonly<JsonObject> = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
  extensions: { [UI_EXTENSION]: UI_CAPABILITY },
};

export interface ClientOffer {
  readonly clientInfo: Implementation;
  /** MCP client capabilities. */
  readonly offers: Readonly<JsonObject>;
  /** Asks a modern server for log messages from this level on. */
  readonly logLevel?: string;
}

/** Sent with every request of the modern era; a legacy server gets the same once, in `initialize`. */
export function modernEnvelope(offer: ClientOffer, version: string): JsonObject {
  return {
    [VERSION_KEY]: version,
    [CLIENT_INFO_KEY]: offer.clientInfo,
    [CLIENT_CAPABILITIES_KEY]: modernCapabilities(offer.offers),
    ...(offer.logLevel === undefined ? {} : { [LOG_LEVEL_KEY]: offer.logLevel }),
  };
}

/** The modern era has no notification for changed roots. */
export function modernCapabilities(capabilities: Readonly<JsonObject>): JsonObject {
  const { roots } = capabilities;
  if (!isJsonObject(roots) || !("listChanged" in roots)) return capabilities;
  const { listChanged: _, ...rest } = roots;
  return { ...capabilities, roots: rest };
}

type Deps = Pick<ConnectionDeps, "workspaceRoots" | "env">;

/** A folder as the root that it is. */
export function rootFor(dir: string): Root {
  return { uri: pathToFileURL(dir).href, name: dir.split(/[\\/]/).findLast((part) => part !== "") ?? dir };
}

/** The client as this server may know it: with the roots that the server is offered and no others. */
export function withOfferedRoots(client: ClientSide, spec: ServerSpec, deps: Deps): ClientSide {
  const roots = fixedRoots(client, spec, deps);
  if (roots === undefined) return client;
  const { key, isWaiting, sample, elicit } = client;
  const { roots: _, ...others } = client.capabilities;
  return {
    key,
    isWaiting,
    capabilities: roots.length > 0 ? { ...others, roots: {} } : others,
    listRoots: roots.length > 0 ? async () => ({ roots: [...roots] }) : undefined,
    sample,
    elicit,
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

/** The capabilities announced before any call: they say whether the server may ask for roots. */
export function capabilitiesFor(offers: Readonly<JsonObject>, { roots }: ServerSpec): Readonly<JsonObject> {
  if (roots === undefined) return offers;
  const { roots: _, ...others } = offers;
  if (roots === "session") return { ...others, roots: { listChanged: true } };
  return roots === false || roots.length === 0 ? others : { ...others, roots: {} };
}

/**
 * Undefined where the client's own roots are the ones to offer. A server may take roots for its folders and drop the one
 * that its entry names, so what happens to be a client's folder is not offered to servers of the config unless their entry
 * asks for it.
 */
function fixedRoots(client: ClientSide, spec: ServerSpec, deps: Deps): readonly Root[] | undefined {
  const { workspaceRoots = [], env } = deps;
  const { roots, origin, baseDir } = spec;
  if (roots === false) return [];
  if (roots === "session") return undefined;
  if (roots !== undefined) {
    // One letter before a colon is a drive.
    const isUri = (root: string): boolean => /^[a-z][a-z0-9+.-]+:/i.test(root);
    return roots.map((root) => (isUri(root) ? { uri: root } : rootFor(absolutePath(root, baseDir, env))));
  }
  if (origin.file === SESSION_ORIGIN.file) return undefined;
  if (client.rootsOnRequest === true) return workspaceRoots;
  const hasOwn = client.listRoots !== undefined && isJsonObject(client.capabilities["roots"]);
  return hasOwn || workspaceRoots.length === 0 ? undefined : workspaceRoots;
}
