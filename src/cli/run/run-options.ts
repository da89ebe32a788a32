/** The options of `toolcrib run`, checked before anything is started. */
import { readFile, stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import type { AgentMode } from "../../agent/agent-options.ts";
import { modelId } from "../../agent/model/open-model.ts";
import type { AgentConfig, ModelSetting } from "../../model/config.ts";
import { ToolcribError, systemErrorCode } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { Invocation } from "../command.ts";

export const MODES = ["ask", "auto", "read-only"] as const satisfies readonly AgentMode[];

export interface RunOptions {
  readonly isChat: boolean;
  /** The first prompt; undefined only in a chat. */
  readonly prompt: readonly ContentBlock[] | undefined;
  readonly model: string | undefined;
  readonly mode: AgentMode;
  readonly role: string | undefined;
  readonly maxSteps: number | undefined;
  readonly maxTokens: number | undefined;
  readonly verbose: boolean;
  /** The conversation to continue: an id or a prefix of it, or the last one in this folder. */
  readonly resume: { readonly id: string } | "last" | undefined;
}

export async function runOptions(invocation: Invocation): Promise<RunOptions> {
  const { flags, stdin } = invocation;
  const id = flags.text("resume");
  if (id !== undefined && flags.has("continue")) throw usage("--resume and --continue cannot be used together.");
  const isChat = flags.has("interactive");
  return {
    isChat,
    model: flags.text("model"),
    // Without a terminal, `ask` would refuse every call. The rules of the config apply in any mode.
    mode: modeOf(flags.text("mode") ?? (stdin.isTTY ? "ask" : "auto")),
    role: flags.text("role"),
    maxSteps: countOf(invocation, "max-steps"),
    maxTokens: countOf(invocation, "max-tokens"),
    verbose: flags.has("verbose"),
    resume: id === undefined ? (flags.has("continue") ? "last" : undefined) : { id },
    prompt: await promptOf(invocation, isChat),
  };
}

export function modeOf(text: string): AgentMode {
  const mode = MODES.find((one) => one === text);
  if (mode !== undefined) return mode;
  throw usage(`The mode must be one of ${MODES.join(", ")}, not "${text}".`);
}

function countOf({ flags }: Invocation, name: "max-steps" | "max-tokens"): number | undefined {
  const text = flags.text(name === "max-steps" ? "maxSteps" : "maxTokens");
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,9}$/.test(text)) throw usage(`--${name} must be a positive whole number, not "${text}".`);
  return Number(text);
}

async function promptOf({ args, flags, stdin, cwd }: Invocation, isChat: boolean): Promise<ContentBlock[] | undefined> {
  const typed = args.join(" ");
  if (typed === "-" && isChat) throw usage("A chat always reads its prompts from stdin. Omit the -.");
  const text = typed === "-" ? (await readAll(stdin)).trim() : typed.trim();
  const files = await Promise.all(flags.list("file").map((path) => attachedFile(path, cwd)));
  if (text !== "") return [...files, { type: "text", text }];
  if (!isChat)
    throw usage(
      "The prompt is missing.",
      'Pass it as toolcrib run "…", use - to read it from stdin, or -i for a chat.',
    );
  if (files.length > 0) throw usage("--file needs a prompt.");
  return undefined;
}

function usage(message: string, hint?: string): ToolcribError {
  return new ToolcribError("invalid_arguments", message, { hint });
}

/** The limit of providers for images. A text of this size would also fill the context of most models. */
const MAX_FILE_BYTES = 5 * 1024 * 1024;

const IMAGE_TYPES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
};

async function attachedFile(path: string, cwd: string): Promise<ContentBlock> {
  const file = resolve(cwd, path);
  const bytes = await readAttachment(file, path);
  const image = IMAGE_TYPES[extname(file).toLowerCase()];
  if (image !== undefined) return { type: "image", data: bytes.toString("base64"), mimeType: image };
  return {
    type: "resource",
    resource: { uri: pathToFileURL(file).href, mimeType: "text/plain", text: decodeText(bytes, path) },
  };
}

async function readAttachment(file: string, path: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > MAX_FILE_BYTES) {
      const message = `${path} is too large to attach: ${size} bytes, with a limit of ${MAX_FILE_BYTES}.`;
      const hint = "Name the file in the prompt, so that the agent reads it with a tool.";
      throw new ToolcribError("too_large", message, { hint });
    }
    return await readFile(file);
  } catch (error) {
    if (error instanceof ToolcribError) throw error;
    const code = systemErrorCode(error);
    throw usage(`--file ${path} cannot be read${code === undefined ? "" : ` (${code})`}.`);
  }
}

function decodeText(bytes: Buffer, path: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\u0000")) return text;
  } catch {
    // Said below.
  }
  throw usage(`--file ${path} is neither UTF-8 text nor a PNG, JPEG, GIF or WebP image.`);
}

/** The models of the config, the default first. */
export function namedModels(agent: AgentConfig): ModelSetting[] {
  return [...(agent.model === undefined ? [] : [agent.model]), ...agent.models];
}

/**
 * @param given The id of a model in the config, an endpoint's own name for its model, or `<provider>/<model>`; the default is
 * `agent.model`.
 */
export function chosenModel(agent: AgentConfig, given: string | undefined): ModelSetting {
  if (given === undefined) {
    if (agent.model !== undefined) return agent.model;
    throw new ToolcribError("invalid_config", "No model is set for the agent.", {
      hint: 'Set "agent": { "model": "…" } in the config, or use --model. anthropic/… needs $ANTHROPIC_API_KEY, openai/… $OPENAI_API_KEY and google/… $GOOGLE_GENERATIVE_AI_API_KEY; ollama/… and lmstudio/… run locally and need no key.',
    });
  }
  const named = namedModels(agent).find(
    (setting) => modelId(setting) === given || (typeof setting !== "string" && setting.model === given),
  );
  if (named !== undefined) return named;
  if (/^[^/\s]+\/\S+$/.test(given)) return given;
  const known = namedModels(agent).map(modelId).join(", ");
  throw new ToolcribError("invalid_arguments", `"${given}" is not a valid model.`, {
    hint: `Write <provider>/<model>, such as anthropic/claude-sonnet-4-5${known === "" ? "." : `, or a model of the config: ${known}.`}`,
  });
}
