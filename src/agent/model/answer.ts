/** One streamed answer of a provider as parts of a step. */
import type { JsonObject } from "../../model/json.ts";
import { readArguments } from "./arguments.ts";
import type { StepPart } from "./chat-model.ts";
import { BrokenOff } from "./failure.ts";
import { META_KEY, type Reach, type SdkPart } from "./open-provider.ts";

/** Throws what the provider reports inside the stream, and BrokenOff for an answer without an end. */
export async function* readAnswer(
  stream: AsyncIterable<SdkPart>,
  reach: Pick<Reach, "protocol" | "model">,
): AsyncGenerator<StepPart> {
  const thoughts = new Thoughts(reach);
  const ids = new Set<string>();
  for await (const part of stream) {
    switch (part.type) {
      case "text-delta":
        if (part.delta !== "") yield { type: "text", text: part.delta };
        break;
      case "reasoning-start":
        thoughts.note(part.id, part.providerMetadata);
        break;
      case "reasoning-delta":
        thoughts.note(part.id, part.providerMetadata);
        if (part.delta !== "") yield { type: "thought", text: part.delta };
        break;
      case "reasoning-end": {
        thoughts.note(part.id, part.providerMetadata);
        const meta = thoughts.end(part.id);
        if (meta !== undefined) yield { type: "thought", text: "", meta };
        break;
      }
      case "tool-call": {
        // What the provider ran itself is no call of ours; we offer no such tools.
        if (part.providerExecuted === true) break;
        const id = unused(part.toolCallId, ids);
        const meta = part.providerMetadata === undefined ? {} : { meta: { ...part.providerMetadata } };
        yield { type: "call", id, name: part.toolName, ...readArguments(part.input), ...meta };
        break;
      }
      case "error":
        throw part.error;
      case "finish": {
        const { unified } = part.finishReason;
        if (unified === "interrupted" || unified === "error") throw new BrokenOff();
        const usage = readUsage(part.usage);
        if (usage !== undefined) yield usage;
        yield { type: "finish", reason: finishReason(unified, ids.size > 0) };
        return;
      }
      default:
        break;
    }
  }
  throw new BrokenOff();
}

type Finish = Extract<SdkPart, { type: "finish" }>;

function finishReason(
  unified: Finish["finishReason"]["unified"],
  calls: boolean,
): Extract<StepPart, { type: "finish" }>["reason"] {
  switch (unified) {
    case "content-filter":
      return "refusal";
    case "length":
      return "length";
    default:
      // Local servers say `stop` also where they gave calls, and the other way round.
      if (calls) return "calls";
      return unified === "other" ? "other" : "stop";
  }
}

function readUsage({ inputTokens, outputTokens }: Finish["usage"]): StepPart | undefined {
  // Not every server tells; nothing is better than a zero that looks like a count.
  if (inputTokens.total === undefined && outputTokens.total === undefined) return undefined;
  const cached = inputTokens.cacheRead;
  return {
    type: "usage",
    input: inputTokens.total ?? 0,
    output: outputTokens.total ?? 0,
    ...(cached === undefined || cached === 0 ? {} : { cached }),
  };
}

/** Some servers give all calls of an answer the same id, or none. */
function unused(id: string, taken: Set<string>): string {
  const base = id === "" ? "call" : id;
  let free = base;
  for (let next = 2; taken.has(free); next++) free = `${base}_${next}`;
  taken.add(free);
  return free;
}

/** What the provider wants back with each thought; it comes in pieces. */
class Thoughts {
  readonly #reach: Pick<Reach, "protocol" | "model">;
  readonly #open = new Map<string, JsonObject>();

  constructor(reach: Pick<Reach, "protocol" | "model">) {
    this.#reach = reach;
  }

  note(id: string, metadata: Readonly<Record<string, JsonObject>> | undefined): void {
    const key = META_KEY[this.#reach.protocol];
    this.#open.set(id, { ...this.#open.get(id), ...metadata?.[key] });
  }

  end(id: string): JsonObject | undefined {
    const { protocol, model } = this.#reach;
    const found = this.#open.get(id) ?? {};
    this.#open.delete(id);
    // There are no signatures in this protocol; the name of the model is what tells whose thought it is.
    if (protocol === "openai-compatible") return { [META_KEY[protocol]]: { ...found, model } };
    return Object.keys(found).length === 0 ? undefined : { [META_KEY[protocol]]: found };
  }
}
