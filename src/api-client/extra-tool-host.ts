/** Runs tools of this process for a session of the hub, and offers them again after a reconnect. */
import type {
  CommandInput,
  CommandOutput,
  ExtraToolDefinition,
  FieldsOf,
  HubEvent,
  ProgressFrame,
} from "../contract/websocket.ts";
import type { JsonObject } from "../model/json.ts";
import { ToolcribApiError } from "./api-error.ts";
import { reconnectDelay } from "./hub-socket.ts";

export interface ExtraToolContext {
  readonly callId: string;
  readonly session: string;
  /** Aborts when the call is cancelled or the connection is lost. */
  readonly signal: AbortSignal;
  /** Also restarts the tool's timeout. */
  readonly onProgress: (progress: ProgressFrame["progress"]) => void;
}

export interface ExtraTool extends Omit<ExtraToolDefinition, "inputSchema" | "parameters"> {
  /** Returns an MCP result, a text or any JSON value. A thrown error becomes a result with `isError`. */
  readonly execute: (args: JsonObject, context: ExtraToolContext) => unknown;
}

export interface ExtraToolsOptions {
  /** The session of the connection by default. */
  readonly session?: string;
}

type Setting = "sessions.setExtraTools";
type Run = <Name extends Setting | "extraTool.result" | "extraTool.progress">(
  type: Name,
  fields: CommandInput<Name>,
) => Promise<CommandOutput<Name>>;

type After = (ms: number, task: () => void) => () => void;

interface ToolSet {
  readonly tools: readonly ExtraTool[];
  /** Whether the hub has accepted it. Only such sets are offered again. */
  isKnown: boolean;
}

/** Errors that may pass. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(["rate_limited", "timeout", "internal", "server_unavailable"]);

/** The session of the connection, which changes with a reconnect. */
const OWN_SESSION = "";

export class ExtraToolHost {
  readonly #run: Run;
  readonly #sets = new Map<string, ToolSet>();
  readonly #running = new Map<string, AbortController>();
  readonly #after: After;
  /** Stops the next attempts to offer a set again. */
  readonly #retries = new Map<ToolSet, () => void>();

  /** Counts connections and disconnects. */
  #connection = 0;

  constructor(run: Run, after: After) {
    this.#run = run;
    this.#after = after;
  }

  async set(tools: readonly ExtraTool[], session = OWN_SESSION): Promise<CommandOutput<Setting>> {
    const before = this.#sets.get(session);
    const set: ToolSet = { tools, isKnown: false };
    // A call may arrive together with the reply.
    this.#sets.set(session, set);
    try {
      const reply = await this.#offer(session, set);
      if (tools.length === 0 && this.#sets.get(session) === set) this.#sets.delete(session);
      return reply;
    } catch (error) {
      if (this.#sets.get(session) === set) {
        if (before === undefined) this.#sets.delete(session);
        else this.#sets.set(session, before);
      }
      throw error;
    }
  }

  take(event: HubEvent): void {
    if (event.type === "extraTool.call") void this.#execute(event);
    else if (event.type === "extraTool.cancel") this.#running.get(event.callId)?.abort();
  }

  /** Offers the tools again on a new connection. */
  renew(): void {
    this.#connection += 1;
    for (const [session, set] of this.#sets) if (set.isKnown) void this.#renew(session, set, this.#connection, 0);
  }

  /** The connection was lost, so results cannot be delivered. */
  abortAll(): void {
    for (const controller of this.#running.values()) controller.abort();
    this.#connection += 1;
    for (const stop of this.#retries.values()) stop();
    this.#retries.clear();
  }

  async #renew(session: string, set: ToolSet, connection: number, attempt: number): Promise<void> {
    this.#retries.delete(set);
    const isWanted = (): boolean => this.#sets.get(session) === set && this.#connection === connection;
    if (!isWanted()) return;
    try {
      await this.#offer(session, set);
    } catch (error) {
      if (!isWanted()) return;
      const code = error instanceof ToolcribApiError ? error.code : undefined;
      if (code === "not_found") this.#sets.delete(session);
      if (code === undefined || !TRANSIENT_CODES.has(code)) return;
      const again = (): void => void this.#renew(session, set, connection, attempt + 1);
      this.#retries.set(set, this.#after(reconnectDelay(attempt), again));
    }
  }

  async #offer(session: string, set: ToolSet): Promise<CommandOutput<Setting>> {
    const tools = set.tools.map(({ execute: _execute, ...definition }) => definition);
    const reply = await this.#run("sessions.setExtraTools", { tools, ...(session === OWN_SESSION ? {} : { session }) });
    set.isKnown = true;
    return reply;
  }

  async #execute({ callId, name, args, session }: FieldsOf<"extraTool.call">): Promise<void> {
    const { tools = [] } = this.#sets.get(session) ?? this.#sets.get(OWN_SESSION) ?? {};
    const controller = new AbortController();
    this.#running.set(callId, controller);
    let result: unknown;
    try {
      const tool = tools.find((each) => each.name === name);
      if (tool === undefined) throw new Error(`The tool "${name}" no longer exists.`);
      const onProgress: ExtraToolContext["onProgress"] = (progress) => {
        if (this.#running.has(callId)) this.#run("extraTool.progress", { callId, ...progress }).catch(() => {});
      };
      result = await tool.execute(args, { callId, session, signal: controller.signal, onProgress });
      // A value that is not JSON fails here, where the error can still be reported.
      JSON.stringify(result);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      result = { content: [{ type: "text", text }], isError: true };
    }
    this.#running.delete(callId);
    // A cancelled call has no receiver.
    if (!controller.signal.aborted) this.#run("extraTool.result", { callId, result }).catch(() => {});
  }
}
