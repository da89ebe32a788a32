/** One client that calls, cancels, goes away and comes back, and checks that each answer is its own. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Era } from "../client/protocol.ts";
import { StreamableClient } from "../client/streamable.ts";
import type { Random } from "./random.ts";
import type { Tally } from "./tally.ts";

export interface CallerOptions {
  readonly name: string;
  readonly url: string;
  readonly era: Era;
  /** Public names. */
  readonly tools: readonly string[];
  readonly tally: Tally;
  readonly random: Random;
  /** Aborts when no new calls shall begin. */
  readonly until: AbortSignal;
}

type Manner = "plain" | "cancel" | "disconnect" | "crash";

const CALLS_PER_SESSION = 150;
const MOST_DELAY_MS = 30;
const LONG = 64 * 1024;
const UNAVAILABLE = -32_013;
const TIMEOUT = -32_014;
const CANCELLED = -32_015;

export async function keepCalling(options: CallerOptions): Promise<void> {
  const { name, url, era, tally, until } = options;
  let last = 0;
  while (!until.aborted) {
    const onStray = (answer: Answer): void =>
      tally.count("doubled", `${name} got a second answer ${String(answer.id)}`);
    const client = await StreamableClient.open({ url, era, onStray });
    for (let call = 0; call < CALLS_PER_SESSION && !until.aborted; call += 1) {
      last += 1;
      await callOnce(client, `${name}-${last}`, options);
    }
    await client.close();
  }
}

async function callOnce(client: StreamableClient, id: string, options: CallerOptions): Promise<void> {
  const { tools, tally, random, era } = options;
  const manner = mannerOf(random);
  const text = random.next() < 0.03 ? `${id} ${"y".repeat(LONG)}` : id;
  const delayMs = random.next() < 0.5 ? 0 : random.below(MOST_DELAY_MS);
  const args = { text, ...(delayMs > 0 ? { delayMs } : {}), ...(manner === "crash" ? { crash: true } : {}) };
  const leave = new AbortController();
  const requestId = client.nextId;

  tally.begin(id);
  const sent = client.request("tools/call", { name: random.pick(tools) ?? "", arguments: args }, leave.signal).then(
    (answer) => judge(tally, id, text, manner, answer),
    (error: unknown) => judgeFailure(tally, id, manner, error),
  );
  if (manner === "cancel" || manner === "disconnect") {
    await sleep(random.below(MOST_DELAY_MS));
    // In the modern era going away is how a call is cancelled.
    if (manner === "disconnect" || era === "modern") leave.abort();
    else await client.notify("notifications/cancelled", { requestId, reason: "soak" }).catch(() => {});
  }
  await sent;
}

function mannerOf(random: Random): Manner {
  const chance = random.next();
  if (chance < 0.06) return "cancel";
  if (chance < 0.12) return "disconnect";
  return chance < 0.13 ? "crash" : "plain";
}

function judge(tally: Tally, id: string, text: string, manner: Manner, { result, error }: Answer): void {
  if (error !== undefined) {
    if (error.code === UNAVAILABLE) return tally.end(id, "unavailable");
    if (error.code === TIMEOUT) return tally.end(id, "timeout");
    if (error.code === CANCELLED && manner === "cancel") return tally.end(id, "cancelled");
    return tally.end(id, "wrong", `${error.code} ${error.message}`);
  }
  // What the echo server answers.
  const content = result?.["content"] as readonly { text?: string }[] | undefined;
  const own = content?.length === 1 && content[0]?.text === text;
  tally.end(id, own ? "answered" : "wrong", JSON.stringify(result)?.slice(0, 200));
}

/** No answer is right only for a call that was given up. */
function judgeFailure(tally: Tally, id: string, manner: Manner, error: unknown): void {
  const why = error instanceof Error ? error.message : String(error);
  if (manner === "disconnect") return tally.end(id, "disconnected");
  if (manner === "cancel") return tally.end(id, "cancelled");
  tally.end(id, "lost", why);
}
