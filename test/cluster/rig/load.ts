/** Clients of both eras that write through the cluster all the time, and remember what each was told. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Era } from "../../../bench/client/protocol.ts";
import { StreamableClient } from "../../../bench/client/streamable.ts";
import { type Written, written } from "./counting.ts";

export interface Attempt {
  readonly id: string;
  readonly era: Era;
  readonly begun: number;
  ended: number;
  /** Process of the server that has written it; undefined if the client was told of a failure. */
  pid: number | undefined;
  failure: Failure | undefined;
}

export interface Failure {
  readonly message: string;
  /** Of the JSON-RPC error; undefined if there was no answer at all. */
  readonly code: number | undefined;
  /** The hub says that no server can have begun it. */
  readonly notSent: boolean;
}

export interface LoadOptions {
  /** Of the MCP endpoint. */
  readonly url: string;
  readonly clients: Readonly<Record<Era, number>>;
  /** Public names of tools that append. */
  readonly tools: readonly string[];
  /** Between two calls of one client. */
  readonly pauseMs?: number;
  readonly callMs?: number;
  /** How long the server takes before it writes. */
  readonly delayMs?: number;
  /** Beginning of all ids, where several loads write into one file. */
  readonly name?: string;
}

const CALL_MS = 15_000;

export class Load {
  readonly attempts: Attempt[] = [];
  readonly #options: LoadOptions;
  readonly #end = new AbortController();
  readonly #running: Promise<void>[];
  /** Old-era clients that had to begin a new session. */
  reinitialised = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { legacy, modern } = options.clients;
    this.#running = [
      ...Array.from({ length: modern }, (_, index) => this.#keepCalling("modern", `m${index}`)),
      ...Array.from({ length: legacy }, (_, index) => this.#keepCalling("legacy", `l${index}`)),
    ];
  }

  /** No new calls; resolves when those under way have ended. */
  async stop(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#running);
  }

  get acknowledged(): Attempt[] {
    return this.attempts.filter(({ pid }) => pid !== undefined);
  }

  get failed(): Attempt[] {
    return this.attempts.filter(({ failure }) => failure !== undefined);
  }

  /** Waits for an answer to a call that was begun after this moment; gives the milliseconds until then. */
  async untilAnswered(limitMs: number, accept: (attempt: Attempt) => boolean = () => true): Promise<number> {
    const start = Date.now();
    for (;;) {
      const first = this.acknowledged.find((attempt) => attempt.begun >= start && accept(attempt));
      if (first !== undefined) return first.ended - start;
      if (Date.now() - start > limitMs) return Number.POSITIVE_INFINITY;
      await sleep(20);
    }
  }

  /** Waits until every client has had so many more answers. */
  async progress(calls: number, limitMs = 20_000): Promise<void> {
    const before = this.acknowledged.length;
    const deadline = Date.now() + limitMs;
    while (this.acknowledged.length < before + calls * this.#running.length) {
      if (Date.now() > deadline)
        throw new Error(`Only ${this.acknowledged.length - before} answers within ${limitMs} ms.\n${this.summary()}`);
      await sleep(20);
    }
  }

  summary(): string {
    const kinds = new Map<string, number>();
    for (const { failure, era } of this.failed) {
      const kind = `${era}: ${failure?.code ?? "no answer"} ${failure?.message.replaceAll(/\d+/g, "#") ?? ""}`;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    const failures = [...kinds].map(([kind, count]) => `  ${count} × ${kind}`);
    return [`${this.acknowledged.length} answered, ${this.failed.length} failed`, ...failures].join("\n");
  }

  async #keepCalling(era: Era, name: string): Promise<void> {
    const { url, tools, pauseMs = 10, name: loadName = "" } = this.#options;
    let client: StreamableClient | undefined;
    for (let call = 0; !this.#end.signal.aborted; call += 1) {
      try {
        client ??= await StreamableClient.open({ url, era });
      } catch {
        // Nobody is there yet: a client comes again.
        await sleep(50);
        continue;
      }
      const ok = await this.#call(client, era, `${loadName}${name}-${call}`, tools[call % tools.length] ?? "");
      if (!ok) {
        await sleep(50);
        // Whatever the reason was, an old-era client begins anew, as it must after a 404.
        if (era === "legacy") {
          client = undefined;
          this.reinitialised += 1;
        }
      }
      await sleep(pauseMs);
    }
    await client?.close().catch(() => {});
  }

  async #call(client: StreamableClient, era: Era, id: string, name: string): Promise<boolean> {
    const { callMs = CALL_MS, delayMs = 0 } = this.#options;
    const attempt: Attempt = { id, era, begun: Date.now(), ended: 0, pid: undefined, failure: undefined };
    this.attempts.push(attempt);
    try {
      const args = { id, ...(delayMs > 0 ? { delayMs } : {}) };
      const answer = await client.request("tools/call", { name, arguments: args }, AbortSignal.timeout(callMs));
      attempt.pid = pidIn(answer);
      if (attempt.pid === undefined) attempt.failure = failureIn(answer);
    } catch (error) {
      attempt.failure = { message: messageOf(error), code: undefined, notSent: false };
    }
    attempt.ended = Date.now();
    return attempt.pid !== undefined;
  }
}

function pidIn({ result }: Answer): number | undefined {
  // What the counting server answers.
  const content = result?.["content"] as readonly { text?: string }[] | undefined;
  const pid = Number(content?.[0]?.text);
  return result?.["isError"] !== true && pid > 0 ? pid : undefined;
}

function failureIn({ error, result }: Answer): Failure {
  const details = error?.data as
    | { readonly details?: { readonly sent?: unknown }; readonly sent?: unknown }
    | undefined;
  return {
    message: error?.message ?? JSON.stringify(result).slice(0, 300),
    code: error?.code,
    notSent: details?.sent === false || details?.details?.sent === false,
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export interface Verdict {
  /** Ids that a client was told are written, and that are not. */
  readonly lost: string[];
  /** Ids that were written more than once. */
  readonly doubled: string[];
  /** Ids that were said not to have been sent, and were written. */
  readonly denied: string[];
  readonly answered: number;
}

/** What the clients were told against what the server has written. */
export function verdictOn(load: Load, dir: string): Verdict {
  const times = new Map<string, Written[]>();
  for (const entry of written(dir)) times.set(entry.id, [...(times.get(entry.id) ?? []), entry]);
  const count = (id: string): number => times.get(id)?.length ?? 0;
  return {
    answered: load.acknowledged.length,
    lost: load.acknowledged.filter(({ id }) => count(id) === 0).map(({ id }) => id),
    doubled: [...times.keys()].filter((id) => count(id) > 1),
    denied: load.failed.filter(({ id, failure }) => failure?.notSent === true && count(id) > 0).map(({ id }) => id),
  };
}
