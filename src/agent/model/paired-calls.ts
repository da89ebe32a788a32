/** A history that every provider takes: each call has its one result right after it, under ids that are safe and unique. */
import type { AgentMessage, AssistantPart, CallPart, CallResult, ToolMessage } from "../messages.ts";

/** OpenAI takes no longer ones. */
const LONGEST_ID = 40;

const NO_RESULT = "There is no result: the run was interrupted before this call ended.";

/**
 * A call without a result, as an interrupted run leaves it, gets an error as its result; a result without a call is
 * dropped. Ids are the same every time, so that a provider's cache of the conversation holds.
 */
export function pairedCalls(messages: readonly AgentMessage[]): AgentMessage[] {
  const paired: AgentMessage[] = [];
  const taken = new Set<string>();
  let open: OpenCalls | undefined;
  const close = (): void => {
    if (open !== undefined) paired.push(open.toMessage());
    open = undefined;
  };
  for (const message of messages) {
    if (message.role === "tool") {
      open?.add(message.results);
      continue;
    }
    close();
    if (message.role === "user") {
      paired.push(message);
      continue;
    }
    const calls = new OpenCalls(taken);
    paired.push({ role: "assistant", parts: message.parts.map((part) => calls.rename(part)) });
    if (calls.size > 0) open = calls;
  }
  close();
  return paired;
}

/** The calls of one message, which later ones do not touch: some servers count their ids from the start each time. */
class OpenCalls {
  readonly #taken: Set<string>;
  readonly #calls: { readonly id: string; readonly call: CallPart; result?: CallResult }[] = [];

  constructor(taken: Set<string>) {
    this.#taken = taken;
  }

  get size(): number {
    return this.#calls.length;
  }

  rename(part: AssistantPart): AssistantPart {
    if (part.type !== "call") return part;
    const id = freeId(part.id, this.#taken);
    this.#calls.push({ id, call: part });
    return { ...part, id };
  }

  add(results: readonly CallResult[]): void {
    for (const result of results) {
      const open = this.#calls.find((one) => one.call.id === result.id && one.result === undefined);
      if (open !== undefined) open.result = result;
    }
  }

  toMessage(): ToolMessage {
    return {
      role: "tool",
      results: this.#calls.map(({ id, call, result }) =>
        result === undefined
          ? { id, name: call.name, content: [{ type: "text", text: NO_RESULT }], isError: true }
          : { ...result, id, name: call.name },
      ),
    };
  }
}

function freeId(id: string, taken: Set<string>): string {
  const safe = id.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, LONGEST_ID) || "call";
  let free = safe;
  for (let next = 2; taken.has(free); next++) {
    const end = `_${next}`;
    free = safe.slice(0, LONGEST_ID - end.length) + end;
  }
  taken.add(free);
  return free;
}
