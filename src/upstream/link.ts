/** Link: one opened wire on which both sides agreed on a protocol. A Connection has a new one after every reconnect. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, parse, resolve, sep } from "node:path";
import type { Pauses } from "../base/async.ts";
import { ToolcribError } from "../model/errors.ts";
import { type Era, METHOD_NOT_FOUND } from "../model/protocol.ts";
import { type SandboxKind, type ServerSpec, SESSION_ORIGIN } from "../model/server-spec.ts";
import type { TransportKind } from "../model/server-state.ts";
import { offersOAuth } from "../secrets/oauth/authorization-server.ts";
import { loginNeededError } from "../secrets/oauth/login-errors.ts";
import { type ResolvedSpec, resolveSpec } from "../secrets/resolve-spec.ts";
import { Secrets } from "../secrets/secrets.ts";
import type { ConnectionDeps, OpenWire } from "./connection-deps.ts";
import { eraKey } from "./era-memory.ts";
import { type Agreement, agreeOnProtocol, eraOrder, isUnauthorized } from "./handshake.ts";
import { checkRemoteAddress } from "./http/address-policy.ts";
import type { WireCredentials } from "./http/http-client.ts";
import { SseWire } from "./http/sse-wire.ts";
import { StreamableWire } from "./http/streamable-wire.ts";
import { Peer, type PeerOptions } from "./peer.ts";
import { isModernErrorCode, rpcOf } from "./rpc-error.ts";
import { ContainerHttpWire } from "./sandbox/container-http-wire.ts";
import { type SpecSandbox, specSandbox } from "./sandbox/open-sandbox.ts";
import { capabilitiesFor, type ClientOffer } from "./server-requests.ts";
import {
  childEnvironment,
  credentialsInVariable,
  DEFAULT_INHERITED,
  inheritedVariables,
} from "./stdio/child-environment.ts";
import { packageRun, runnerEnvironment } from "./stdio/package-runner.ts";
import { StdioWire } from "./stdio/stdio-wire.ts";
import type { Wire } from "./wire.ts";

export interface Link {
  readonly wire: Wire;
  readonly peer: Peer;
  readonly agreement: Agreement;
}

interface LinkRequest {
  readonly spec: ServerSpec;
  readonly deps: ConnectionDeps;
  readonly peerOptions: PeerOptions;
  readonly signal: AbortSignal;
  /** Counts what is not part of the time that connecting may take: making an image, fetching a package. */
  readonly pauses: Pauses;
  /** Gets the reason why the start takes longer, for a person; null when that is over. */
  readonly onProgress: (text: string | null) => void;
}

/** Opening one link, with all that is tried for it. */
interface Opening extends LinkRequest {
  readonly resolved: ResolvedSpec;
  readonly credentials: WireCredentials | undefined;
  /** By when all attempts together must be over; pauses move it. */
  readonly deadline: number;
}

/** Resolves references, opens a channel and shakes hands. Leaves nothing open when it rejects. */
export async function openLink(request: LinkRequest): Promise<Link> {
  const { spec, deps, signal } = request;
  if (spec.problem !== undefined) {
    throw new ToolcribError("invalid_config", spec.problem, {
      hint: "Correct the entry. A running hub reads the file again when it is saved.",
    });
  }
  const { env, clock, redactor, secrets = new Secrets({ env, clock, redactor }) } = deps;
  const resolved = await resolveSpec(spec, secrets, {
    signal,
    user: deps.secretsUser ?? deps.user,
    env: deps.clientEnv,
  });
  for (const warning of resolved.warnings) request.peerOptions.onWarning?.(warning);
  if (resolved.url !== undefined) checkRemoteAddress(resolved.url, deps.reach, spec.allowHttp);
  const credentials = await credentialsFor(spec, resolved, deps);
  const opening: Opening = { ...request, resolved, credentials, deadline: clock.now() + spec.timeout };
  const key = eraKey(spec);
  const remembered = await deps.eras.get(key);
  const link = await openWithFallbacks(opening, remembered).catch(async (error: unknown) => {
    throw credentials === undefined ? await withLoginAdvice(error, spec, resolved, deps) : error;
  });
  if (link.agreement.era !== remembered) await deps.eras.set(key, link.agreement.era);
  return link;
}

/** After a first attempt that failed, another transport or protocol era may work. */
async function openWithFallbacks(opening: Opening, remembered: Era | undefined): Promise<Link> {
  const { spec } = opening;
  const kind = firstTransport(spec);
  try {
    return await openOn(opening, kind, remembered);
  } catch (error) {
    // A child that died of the modern probe is a legacy server by now.
    if (kind === "stdio" && remembered === "modern" && isExit(error)) return openOn(opening, kind, "legacy");
    // A container is opened as what its entry says.
    if (kind !== "http" || spec.url === undefined || spec.transport !== undefined || !suggestsSse(error)) throw error;
    try {
      return await openOn(opening, "sse", undefined);
    } catch (sseError) {
      throw isUnauthorized(sseError) ? sseError : withNote(error, "SSE was tried too and did not answer either.");
    }
  }
}

export function firstTransport(spec: ServerSpec): TransportKind {
  if (spec.transport !== undefined) return spec.transport;
  const servesHttp = typeof spec.sandbox === "object" && spec.sandbox.port !== undefined;
  return spec.url === undefined && !servesHttp ? "stdio" : "http";
}

async function openOn(opening: Opening, kind: TransportKind, remembered: Era | undefined): Promise<Link> {
  const { spec, deps, peerOptions, signal, resolved, credentials, deadline, pauses } = opening;
  const wire = (deps.openWire ?? openWire)(kind, spec, resolved, deps, credentials);
  const peer = new Peer(wire, peerOptions);
  const stopListening = wire.listen({
    installing: (isInstalling) => (isInstalling ? pauses.pause() : pauses.resume()),
    progress: (text) => opening.onProgress(text),
  });
  try {
    pauses.pause();
    await wire.makeReady?.(signal);
    pauses.resume();
    await openInTime(wire, deadline + pauses.totalMs(), deps, signal);
    const offer: ClientOffer = {
      clientInfo: { name: "toolcrib", version: deps.clientVersion },
      offers: capabilitiesFor(deps.offers, spec),
      logLevel: deps.logLevel,
    };
    const agreement = await agreeOnProtocol(peer, offer, {
      order: eraOrder(kind, remembered),
      deadline,
      clock: deps.clock,
      signal,
      pauses,
    });
    return { wire, peer, agreement };
  } catch (error) {
    peer.end(new ToolcribError("server_unavailable", "The connection could not be made."));
    await wire.close();
    throw error;
  } finally {
    stopListening();
    pauses.resume();
    opening.onProgress(null);
  }
}

async function openInTime(wire: Wire, deadline: number, deps: ConnectionDeps, signal: AbortSignal): Promise<void> {
  const late = new AbortController();
  const wait = Math.max(deadline - deps.clock.now(), 0);
  const stop = deps.clock.after(wait, () => late.abort());
  try {
    await wire.open(AbortSignal.any([signal, late.signal]));
  } catch (error) {
    if (!late.signal.aborted || signal.aborted) throw error;
    throw new ToolcribError("timeout", `It could not be reached within ${wait / 1000} s.`, {
      details: { sent: false },
      cause: error,
    });
  } finally {
    stop();
  }
}

/** A 400, 404 or 405 that no modern server would send may come from a server of the older HTTP+SSE transport. */
function suggestsSse(error: unknown): boolean {
  if (!(error instanceof ToolcribError)) return false;
  const status = error.details?.["status"];
  if (status !== 400 && status !== 404 && status !== 405) return false;
  const rpc = rpcOf(error);
  return rpc === undefined || !(isModernErrorCode(rpc.code) || (status === 404 && rpc.code === METHOD_NOT_FOUND));
}

function isExit(error: unknown): boolean {
  return error instanceof ToolcribError && error.code === "server_unavailable" && rpcOf(error) === undefined;
}

function withNote(error: unknown, note: string): unknown {
  if (!(error instanceof ToolcribError)) return error;
  const { hint, details, code, message } = error;
  return new ToolcribError(code, `${message} ${note}`, { hint, details, cause: error });
}

async function credentialsFor(
  spec: ServerSpec,
  resolved: ResolvedSpec,
  deps: ConnectionDeps,
): Promise<WireCredentials | undefined> {
  if (resolved.url === undefined || deps.oauth === undefined || hasOwnCredentials(spec, resolved)) return undefined;
  const { auth } = resolved;
  const settings = auth?.type === "oauth" || auth?.type === "client-credentials" ? auth : undefined;
  return deps.oauth.credentialsFor({ server: spec.id, url: resolved.url, user: deps.user }, settings);
}

/** A server without a configured login may still want one; the error then says how to log in. */
async function withLoginAdvice(
  error: unknown,
  spec: ServerSpec,
  resolved: ResolvedSpec,
  deps: ConnectionDeps,
): Promise<unknown> {
  if (!(error instanceof ToolcribError) || error.details?.["status"] !== 401) return error;
  if (resolved.url === undefined || hasOwnCredentials(spec, resolved)) return error;
  // There is no login for the server of a client, and it must not make us request other addresses.
  if (deps.reach !== undefined) return error;
  const challenge = error.details["challenge"];
  if (!(await offersOAuth(resolved.url, typeof challenge === "string" ? challenge : undefined))) return error;
  const key = { server: spec.id, url: resolved.url, user: deps.user };
  deps.oauth?.awaitLogin(key);
  return loginNeededError(key);
}

/** A token or key of the config is used as it is, and a refusal is about it. */
function hasOwnCredentials(spec: ServerSpec, { headers }: ResolvedSpec): boolean {
  if (spec.auth?.type === "oauth" || spec.auth?.type === "client-credentials") return false;
  return spec.auth !== undefined || Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

export const openWire: OpenWire = (kind, spec, resolved, deps, credentials): Wire => {
  const { url = "", headers } = resolved;
  const { clock, reach } = deps;
  const sandbox = resolved.url === undefined ? specSandbox(spec, deps) : undefined;
  if (kind === "http" && sandbox !== undefined) return containerWire(spec, resolved, deps, sandbox);
  if (kind === "http") return new StreamableWire({ url, headers, clock, credentials, reach });
  if (kind === "sse") return new SseWire({ url, headers, clock, credentials, reach });
  deps.stderr?.begin(spec.id);
  const folder =
    resolved.cwd ?? (sandbox === undefined ? startFolder(spec, deps.sandboxes?.home, deps.env) : undefined);
  const { command = "", args } = resolved;
  const { env, inherited, withheld } = programEnvironment(spec, resolved, deps, sandbox);
  const depth = sandbox === undefined ? 0 : RUNNER_DEPTHS[sandbox.settings.kind];
  const run = depth === undefined ? undefined : packageRun(command, args);
  return new StdioWire({
    serverId: spec.id,
    onStderr: (chunk) => deps.stderr?.push(spec.id, chunk),
    mask: deps.redactor.mask,
    command,
    args,
    env: run === undefined ? env : runnerEnvironment(run, env),
    inherited,
    runner: run === undefined ? undefined : { run, env, withheld, depth: depth ?? 0, limitMs: spec.installTimeout },
    cwd: folder,
    // Asked when it is closed.
    get closeGraceMs() {
      return deps.closeGraceMs?.();
    },
    sandbox,
    pids: deps.pids,
    clock,
  });
};

/** How many processes a sandbox puts above the program. Those of a container are not among ours. */
const RUNNER_DEPTHS: Partial<Record<SandboxKind, number>> = { none: 0, bubblewrap: 2 };

interface ProgramEnvironment {
  readonly env: Record<string, string>;
  /** The names of the inherited variables. */
  readonly inherited: readonly string[];
  /** Those that the hub has, and that this program would inherit by default. */
  readonly withheld: readonly string[];
}

function programEnvironment(
  spec: ServerSpec,
  { env: named }: ResolvedSpec,
  { env: base, redactor }: ConnectionDeps,
  sandbox: SpecSandbox | undefined,
): ProgramEnvironment {
  const inherited = inheritedVariables(spec, { base, named, sandboxNetwork: sandbox?.settings.network });
  for (const value of Object.values(inherited)) {
    for (const credential of credentialsInVariable(value)) redactor.addCredential(credential);
  }
  const env = childEnvironment(base, { ...inherited, ...named });
  const usual = inheritedVariables({ origin: spec.origin, inherit: DEFAULT_INHERITED.slice() }, { base, named });
  return { env, inherited: Object.keys(inherited), withheld: Object.keys(usual).filter((name) => !(name in env)) };
}

/**
 * Where a program without a `cwd` starts: in the folder of the config that names it, or in the user's home if that is Toolcrib's
 * own folder. The current folder is not used: `npx` and `python -m` load code from it. The server of a session starts where its
 * client is.
 */
export function startFolder(
  { baseDir, origin }: ServerSpec,
  home: string | undefined,
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (origin.file === SESSION_ORIGIN.file) return undefined;
  const isInHome = home !== undefined && `${baseDir}${sep}`.startsWith(`${home}${sep}`);
  const folder = isInHome ? (env["HOME"] ?? env["USERPROFILE"] ?? homedir()) : baseDir;
  return isAbsolute(folder) && existsSync(folder) ? folder : parse(resolve("/")).root;
}

function containerWire(spec: ServerSpec, resolved: ResolvedSpec, deps: ConnectionDeps, sandbox: SpecSandbox): Wire {
  const { id: serverId } = spec;
  const { command = "", args, cwd, headers } = resolved;
  const { settings, baseDir } = sandbox;
  const { env, inherited } = programEnvironment(spec, resolved, deps, sandbox);
  if (settings.kind !== "container") {
    throw new ToolcribError(
      "invalid_config",
      `\`sandbox.port\` is for containers, and its sandbox is ${settings.kind}.`,
      {
        hint: 'Set `sandbox.kind` to "container", or leave `port` out.',
        details: { sent: false },
      },
    );
  }
  deps.stderr?.begin(serverId);
  return new ContainerHttpWire({
    program: { serverId, command, args, env, inherited, cwd, baseDir },
    settings,
    deps: sandbox.deps,
    headers,
    pids: deps.pids,
    clock: deps.clock,
    onOutput: (chunk) => deps.stderr?.push(serverId, chunk),
    mask: deps.redactor.mask,
    get closeGraceMs() {
      return deps.closeGraceMs?.();
    },
  });
}
