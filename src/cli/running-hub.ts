/** A hub for one command: loads the config, shows warnings, connects servers as needed and closes everything. */
import { endsWithin } from "../base/async.ts";
import { NamePattern } from "../catalog/naming.ts";
import { joinEditorSession, noEditorSession } from "../doors/http/api/caller-sessions.ts";
import { visibleServers } from "../doors/http/api/visibility.ts";
import { createHub } from "../hub/create/create-hub.ts";
import type { Hub } from "../hub/hub.ts";
import { SKILLS_WARNING } from "../hub/skills/user-skills.ts";
import type { View } from "../hub/view/view.ts";
import type { Capability } from "../model/capability.ts";
import type { Caller } from "../model/caller.ts";
import { ToolcribError } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { Session } from "../sessions/session.ts";
import type { LoadedConfig } from "../model/loaded-config.ts";
import type { ServerInfo } from "../model/server-state.ts";
import { loginCommand } from "../secrets/oauth/login-errors.ts";
import { closeOnSignals } from "../upstream/stdio/child-processes.ts";
import { loadCommandConfig } from "./command-config.ts";
import type { AttachedHub, Invocation } from "./command.ts";
import { CommandTimeout, listenForStopSignals } from "./signals.ts";
import { counted } from "./table.ts";
import { askOnTerminal } from "./terminal-input.ts";
import type { HubEvents } from "../hub/hub-events.ts";

export class RunningHub {
  readonly hub: Hub;
  /** That of the command. */
  readonly session: Session;
  /** Aborts on Ctrl-C and when `--timeout` is over. */
  readonly signal: AbortSignal;
  /** Milliseconds that connecting took, by server. */
  readonly took = new Map<string, number>();
  /** Problems with the user's own skills, found while the hub was created. */
  readonly skillWarnings: readonly string[];
  readonly #timeout: CommandTimeout;
  readonly #attempts = new Map<string, Promise<unknown>>();
  readonly #ended = new Set<string>();

  /** Whether the hub was there before the command and stays when it ends. */
  readonly isShared: boolean;
  readonly #isOperator: boolean;

  constructor(hub: Hub, signal: AbortSignal, timeout: CommandTimeout, session?: Session) {
    this.hub = hub;
    this.session = session ?? hub.session;
    this.isShared = session !== undefined;
    this.#isOperator = this.session.decidesForAll;
    this.skillWarnings = (this.#isOperator ? hub.warnings() : [])
      .filter(({ message }) => message.startsWith(SKILLS_WARNING))
      .map(({ message }) => message.slice(SKILLS_WARNING.length));
    this.signal = signal;
    this.#timeout = timeout;
  }

  /** Those that the command may know of. */
  servers(): ServerInfo[] {
    return visibleServers(this.hub, this.session);
  }

  /** Starts connecting these servers, all at once. At a shared hub only its operator does; others wait for its own attempts. */
  connect(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#attempts.has(id)) continue;
      if (!this.#isOperator) {
        this.#attempts.set(id, this.hub.servers.settled());
        continue;
      }
      const started = performance.now();
      const attempt = this.hub.servers.connect(id).then((info) => {
        this.took.set(id, Math.round(performance.now() - started));
        return info;
      });
      this.#attempts.set(id, attempt);
    }
  }

  /** Rejects if the server cannot be connected. */
  async connectOne(server: string): Promise<void> {
    this.connect([server]);
    await this.settled();
    this.assertTime();
    const down = this.unreachable().find(({ info }) => info.id === server);
    if (down === undefined) return;
    throw new ToolcribError("server_unavailable", `The server "${server}" is not connected: ${down.reason}`, {
      hint: "Run toolcrib doctor to check it.",
      details: { server, state: down.info.state },
    });
  }

  /** Connects the servers that connect automatically. A hub that was there before has done so. */
  connectAuto(): void {
    const sleeping = this.sleeping();
    const ids = this.hub.config.servers
      .filter(({ id, enabled, autoConnect }) => enabled && autoConnect && !sleeping.includes(id))
      .map(({ id }) => id);
    if (!this.isShared) return this.connect(ids);
    const settled = this.hub.servers.settled();
    for (const id of ids) if (!this.#attempts.has(id)) this.#attempts.set(id, settled);
  }

  /** Ids of servers that are listed and wait for their next use. */
  sleeping(): string[] {
    return this.hub.servers.list().flatMap(({ id, sleeping }) => (sleeping === true ? [id] : []));
  }

  /** Resolves when every attempt has ended or the time is up. */
  async settled(): Promise<void> {
    await endsWithin(Promise.allSettled(this.#attempts.values()), { signal: this.#timeout.signal });
  }

  /** Ids of the servers whose attempt has not ended. */
  awaited(): ServerInfo[] {
    return this.servers().filter(
      ({ id, state }) => this.#attempts.has(id) && !this.#ended.has(id) && (!this.isShared || state === "connecting"),
    );
  }

  /** Each server as soon as it is not awaited any more; all that are left when the time is up. */
  async *answers(): AsyncGenerator<ServerInfo> {
    const left = new Set(this.servers().map(({ id }) => id));
    let isOver = false;
    let wake = (): void => {};
    const stop = this.hub.on("server", () => wake());
    for (const [id, attempt] of this.#attempts) {
      const end = (): void => {
        this.#ended.add(id);
        wake();
      };
      attempt.then(end, end);
    }
    void this.settled().then(() => {
      isOver = true;
      wake();
    });
    try {
      for (;;) {
        const woken = new Promise<void>((resolve) => (wake = resolve));
        const awaited = new Set(isOver ? [] : this.awaited().map(({ id }) => id));
        for (const info of this.servers()) if (!awaited.has(info.id) && left.delete(info.id)) yield info;
        if (left.size === 0 || isOver) return;
        await woken;
      }
    } finally {
      stop();
    }
  }

  /**
   * Resolves with the result of `find` as soon as there is one, and with undefined once every attempt has ended or `withinMs`
   * is over.
   */
  async until<Found>(find: () => Found | undefined, withinMs?: number): Promise<Found | undefined> {
    const found = find();
    if (found !== undefined) return found;
    let stop = (): void => {};
    const appeared = new Promise<void>((resolve) => {
      const look = (): void => {
        if (find() !== undefined) resolve();
      };
      const stops = [this.hub.on("catalog", look), this.hub.on("server", look)];
      stop = () => {
        for (const each of stops) each();
      };
    });
    await endsWithin(Promise.race([appeared, this.settled()]), { ms: withinMs });
    stop();
    this.assertTime();
    return find();
  }

  /** Throws `timeout` when `--timeout` is over. */
  assertTime(): void {
    if (this.#timeout.error !== undefined) throw this.#timeout.error;
  }

  get timedOut(): ToolcribError | undefined {
    return this.#timeout.error;
  }

  /** The servers that failed to connect, with the reason. */
  unreachable(): { info: ServerInfo; reason: string }[] {
    return this.servers()
      .filter(({ id, status, sleeping }) => this.#attempts.has(id) && status !== "connected" && sleeping !== true)
      .map((info) => ({ info, reason: info.lastError ?? this.#waitedFor(info) }));
  }

  #waitedFor({ state, progress }: ServerInfo): string {
    const { ms } = this.#timeout;
    // Without a limit of its own a command does not wait longer than a shared hub does for its lists.
    const waited = state === "connecting" && ms !== undefined ? `not connected within ${ms} ms` : `it is ${state}`;
    return progress === undefined ? waited : `${waited}: ${progress}`;
  }
}

interface HubNeeds {
  /** By default it is loaded here, and its warnings are shown. */
  readonly config?: LoadedConfig;
  /** Replaces showing warnings. */
  readonly onWarning?: (text: string) => void;
}

export async function withHub(
  invocation: Invocation,
  use: (running: RunningHub) => Promise<number>,
  needs: HubNeeds = {},
): Promise<number> {
  if (invocation.attached !== undefined) return withAttachedHub(invocation, invocation.attached, use, needs);
  const config = needs.config ?? (await loadCommandConfig(invocation));
  const onWarning = needs.onWarning ?? ((text: string) => invocation.out.warn(text));
  const timeout = new CommandTimeout(invocation.flags.number("timeout"));
  const signals = listenForStopSignals({ onSecond: "ignore" });
  let hub: Hub | undefined;
  // A call in progress is cancelled at its server first; then every child process is ended.
  const stopClosing = closeOnSignals(async () => hub?.close());
  try {
    const role = invocation.flags.text("role");
    const onAsk = askOnTerminal(invocation);
    hub = await createHub(config, {
      connect: "none",
      skillServers: false,
      // A single command uses an existing database and creates none.
      store: "existing",
      door: "cli",
      env: invocation.env,
      redactor: invocation.out.redactor,
      otelExport: true,
      role,
      onAsk,
    });
    const tell = ({ server, message }: HubEvents["warning"]): void =>
      onWarning(server === undefined ? message : `${server}: ${message}`);
    // Commands about skills show these themselves; for others they are irrelevant.
    for (const early of hub.warnings()) if (!early.message.startsWith(SKILLS_WARNING)) tell(early);
    hub.on("warning", tell);
    hub.on("server", ({ info }) => {
      if (info.progress !== undefined) invocation.out.note(`${info.id}: ${info.progress}`);
    });
    const exitCode = await use(new RunningHub(hub, AbortSignal.any([signals.signal, timeout.signal]), timeout));
    return signals.exitCode ?? exitCode;
  } catch (error) {
    // An error after a signal is a consequence of it.
    if (signals.exitCode === undefined) throw error;
    return signals.exitCode;
  } finally {
    timeout.stop();
    await hub?.close();
    stopClosing();
    // After a signal the listeners stay: their presence makes `closeOnSignals` set an exit code.
    if (signals.exitCode === undefined) signals.dispose();
  }
}

/** On a hub that other clients use as well: nothing of it is created or closed here. */
async function withAttachedHub(
  invocation: Invocation,
  { hub, signal, caller, peer, parent }: AttachedHub,
  use: (running: RunningHub) => Promise<number>,
  { onWarning }: HubNeeds,
): Promise<number> {
  const timeout = new CommandTimeout(invocation.flags.number("timeout"));
  const role = invocation.flags.text("role");
  if (caller.role !== undefined && role !== undefined && role !== caller.role) {
    throw new ToolcribError("denied", `This token is for the role ${caller.role}.`, { hint: "Omit --role." });
  }
  const isOperator = caller.scopes.has("admin");
  const wanted = invocation.flags.text("session");
  const joining = wanted === undefined ? undefined : joinByPrefix(hub, caller, wanted);
  const session = hub.openSession({
    ...joining,
    door: "cli",
    owner: caller.owner,
    decidesForAll: isOperator,
    mayRunCommands: isOperator,
    user: caller.user,
    role: caller.role ?? role,
    caller: caller.key,
    parent: parent?.(),
    onAsk: askOnTerminal(invocation),
    clientInfo: { name: "toolcrib", version: VERSION, ...peer },
  });
  if (isOperator && onWarning !== undefined) {
    for (const { message } of hub.warnings()) if (!message.startsWith(SKILLS_WARNING)) onWarning(message);
  }
  try {
    return await use(new RunningHub(hub, AbortSignal.any([signal, timeout.signal]), timeout, session));
  } finally {
    timeout.stop();
    session.close();
  }
}

/** Throws `not_found` unless one session of an editor is meant, and the caller may join it. */
function joinByPrefix(hub: Hub, caller: Caller, wanted: string): ReturnType<typeof joinEditorSession> {
  const ids = hub.internals.sessions().flatMap(({ editorId }) => editorId ?? []);
  const meant = ids.filter((id) => id.startsWith(wanted));
  const joining = joinEditorSession(hub.internals, caller, meant.length === 1 ? (meant[0] ?? wanted) : wanted);
  if (joining === undefined) throw noEditorSession(wanted);
  return joining;
}

const MAX_SILENT_MS = 3000;

/** Waits for all servers and shows each as it answers; on a terminal a line says what is awaited. */
export async function showAnswers(
  out: Invocation["out"],
  running: RunningHub,
  show: (info: ServerInfo) => void = () => {},
): Promise<void> {
  const started = performance.now();
  const { stop } = out.spinner(() => waitingText(running.awaited(), performance.now() - started));
  try {
    for await (const info of running.answers()) show(info);
  } finally {
    stop();
  }
}

/** After a while the servers are named, with what each is doing. */
function waitingText(awaited: readonly ServerInfo[], ms: number): string {
  if (ms < MAX_SILENT_MS) return `connecting ${counted(awaited.length, "server")}`;
  const names = awaited.map(({ id, progress }) => (progress === undefined ? id : `${id} (${progress})`));
  return `${Math.floor(ms / 1000)} s, waiting for ${names.join(", ")}`;
}

/** How long to wait for servers whose prefix does not match the name: names can be truncated and hashed. */
const UNLIKELY_SERVER_WAIT_MS = 3000;

/**
 * Connects servers whose names can match first, so that unrelated servers cause no delay. Undefined if no reachable server has
 * it; the hub then gives the reason.
 */
export async function findCapability<C extends Capability>(
  running: RunningHub,
  name: string,
  among: (view: View) => readonly C[],
): Promise<C | undefined> {
  const { hub } = running;
  const find = (): C | undefined => among(hub.view(running.session)).find((capability) => capability.name === name);
  const template = hub.config.config.tools.naming;
  const candidates = hub.config.servers.filter(
    (spec) => spec.enabled && new NamePattern(template, spec.id, spec.toolPrefix).canProduce(name),
  );
  // The use of a sleeping one starts it.
  const sleeping = running.sleeping();
  running.connect(candidates.flatMap(({ id }) => (sleeping.includes(id) ? [] : [id])));
  const found = await running.until(find);
  if (found !== undefined) return found;
  running.connectAuto();
  return running.until(find, UNLIKELY_SERVER_WAIT_MS);
}

/** A URI does not reveal its server, so servers that are down are reported and the hub decides. */
export async function findResource(running: RunningHub, uri: string, tell: (text: string) => void): Promise<void> {
  const { hub } = running;
  running.connectAuto();
  const found = await running.until(() =>
    hub.view(running.session).resources.find((resource) => resource.name === uri),
  );
  if (found !== undefined) return;
  for (const { info, reason } of running.unreachable()) tell(`not connected: ${info.id}: ${reason}`);
}

/** For a login that expires soon and cannot be renewed. An expired login is reported as the server's failure. */
export function loginExpiryNote({
  id,
  auth,
}: ServerInfo): { readonly message: string; readonly hint: string } | undefined {
  if (auth?.state !== "expires_soon" || auth.expiresAt === undefined) return undefined;
  const command = loginCommand(id);
  return {
    message: `the login expires at ${auth.expiresAt}; renew it with ${command}`,
    hint: `Run ${command} before then.`,
  };
}
