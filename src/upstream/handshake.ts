/** How each protocol era opens: `initialize` in the legacy one, `server/discover` in the modern one. */
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type Era,
  LATEST_LEGACY_VERSION,
  LEGACY_VERSIONS,
  MODERN_VERSION,
  SERVER_INFO_KEY,
} from "../model/protocol.ts";
import { type ClientOffer, modernEnvelope } from "./client-offer.ts";
import type { Peer } from "./peer.ts";
import { rpcOf } from "./rpc-error.ts";
import { UNSUPPORTED_VERSION } from "../model/rpc.ts";

/** What both sides know of each other once the handshake is over. */
export interface Agreement {
  readonly era: Era;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject | null;
  readonly instructions: string | null;
}

export interface HandshakeOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export function shakeHands(era: Era, peer: Peer, offer: ClientOffer, options: HandshakeOptions): Promise<Agreement> {
  return era === "legacy" ? initialize(peer, offer, options) : discover(peer, offer, options);
}

async function initialize(peer: Peer, offer: ClientOffer, options: HandshakeOptions): Promise<Agreement> {
  const params = {
    protocolVersion: LATEST_LEGACY_VERSION,
    capabilities: offer.offers,
    clientInfo: offer.clientInfo,
  };
  const result = await peer.request("initialize", params, { ...options, uncancellable: true });
  const version = result["protocolVersion"];
  if (!LEGACY_VERSIONS.some((known) => known === version)) throw versionMismatch([version]);
  const agreement = agreementOf("legacy", String(version), result, result["serverInfo"]);
  peer.wire.agreed({ era: "legacy", version: agreement.version });
  await peer.notify("notifications/initialized");
  return agreement;
}

async function discover(peer: Peer, offer: ClientOffer, options: HandshakeOptions): Promise<Agreement> {
  peer.setEnvelope(modernEnvelope(offer, MODERN_VERSION));
  try {
    const result = await askTwice(peer, options);
    const supported = result["supportedVersions"];
    if (!Array.isArray(supported) || supported.length === 0) throw notModern();
    if (!supported.includes(MODERN_VERSION)) throw versionMismatch(supported);
    const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
    // Revisions before the final one carried `serverInfo` in the body.
    const serverInfo = meta[SERVER_INFO_KEY] ?? result["serverInfo"];
    const agreement = agreementOf("modern", MODERN_VERSION, result, serverInfo);
    peer.wire.agreed({ era: "modern", version: MODERN_VERSION });
    return agreement;
  } catch (error) {
    peer.setEnvelope(undefined);
    const refused = refusedVersions(error);
    throw refused === undefined ? error : versionMismatch(refused);
  }
}

/** A refusal that lists the very version it was asked in is taken at its list: the request goes out once more. */
async function askTwice(peer: Peer, options: HandshakeOptions): Promise<JsonObject> {
  const ask = (): Promise<JsonObject> => peer.request("server/discover", {}, options);
  try {
    return await ask();
  } catch (error) {
    if (refusedVersions(error)?.includes(MODERN_VERSION) !== true) throw error;
    return ask();
  }
}

/** What a server that refuses our version says it speaks; undefined for any other error. */
function refusedVersions(error: unknown): unknown[] | undefined {
  const rpc = rpcOf(error);
  if (rpc?.code !== UNSUPPORTED_VERSION) return undefined;
  const supported = isJsonObject(rpc.data) ? rpc.data["supported"] : undefined;
  return Array.isArray(supported) ? supported : [];
}

function agreementOf(era: Era, version: string, result: JsonObject, serverInfo: unknown): Agreement {
  return {
    era,
    version,
    capabilities: isJsonObject(result["capabilities"]) ? result["capabilities"] : {},
    serverInfo: isJsonObject(serverInfo) ? serverInfo : null,
    instructions: typeof result["instructions"] === "string" ? result["instructions"] : null,
  };
}

/** `details.versions` are the server's; what to do next depends on whether one of them belongs to the other era. */
function versionMismatch(versions: unknown): ToolcribError {
  const theirs = Array.isArray(versions) ? versions.filter((version) => typeof version === "string") : [];
  const ours = [MODERN_VERSION, ...LEGACY_VERSIONS].join(", ");
  return new ToolcribError(
    "server_unavailable",
    `The server speaks protocol version ${theirs.join(", ") || "(none given)"}; Toolcrib speaks ${ours}.`,
    { hint: "Use a version of the server that speaks one of these.", details: { versions: theirs, permanent: true } },
  );
}

/** Some legacy servers answer any method; what they say to `server/discover` names no versions. */
function notModern(): ToolcribError {
  return new ToolcribError("server_unavailable", "The server's answer to server/discover names no protocol versions.", {
    details: { otherEra: true },
  });
}

export function versionsOf(error: unknown): readonly string[] | undefined {
  const versions = error instanceof ToolcribError ? error.details?.["versions"] : undefined;
  return Array.isArray(versions) ? versions.filter((version) => typeof version === "string") : undefined;
}
