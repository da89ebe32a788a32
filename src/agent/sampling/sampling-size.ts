/** How large a request of a server for the model is: what it sends costs as much as what it gets. */
import { ToolcribError } from "../../model/errors.ts";
import type { AgentMessage } from "../messages.ts";
import type { ModelStep } from "../model/chat-model.ts";

const MOST_TEXT_BYTES = 200_000;
/** Of images and the like, in base64. */
const MOST_MEDIA_BYTES = 4_000_000;
/** Counting as models do would need their tables. */
const BYTES_PER_TOKEN = 4;
/** About what providers count for an image of middle size. */
const TOKENS_PER_MEDIUM = 1500;

/** About how many tokens it takes with its answer; throws `too_large` for one that is not answered. */
export function samplingTokens({ system, messages, maxOutputTokens = 0 }: ModelStep): number {
  let text = Buffer.byteLength(system);
  let mediaBytes = 0;
  let media = 0;
  for (const block of messages.flatMap((message) => blocksOf(message))) {
    const bytes = Buffer.byteLength(JSON.stringify(block));
    if (block.type === "image" || block.type === "audio") {
      media += 1;
      mediaBytes += bytes;
    } else {
      text += bytes;
    }
  }
  if (text > MOST_TEXT_BYTES) throw tooLarge(`${text} bytes of text`, MOST_TEXT_BYTES);
  if (mediaBytes > MOST_MEDIA_BYTES) throw tooLarge(`${mediaBytes} bytes of images and the like`, MOST_MEDIA_BYTES);
  return Math.ceil(text / BYTES_PER_TOKEN) + media * TOKENS_PER_MEDIUM + maxOutputTokens;
}

function blocksOf(message: AgentMessage): readonly { readonly type: string }[] {
  if (message.role === "user") return message.content;
  return message.role === "assistant" ? message.parts : [];
}

function tooLarge(what: string, most: number): ToolcribError {
  return new ToolcribError("too_large", `A sampling request with ${what} is not answered.`, {
    hint: `Send at most ${most} bytes.`,
  });
}
