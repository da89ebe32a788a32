/** What the options of `toolcrib run` say, checked before anything is started. */
import { text as readAll } from "node:stream/consumers";
import type { AgentMode } from "../../agent/agent-options.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { Invocation } from "../command.ts";
import { attachedFile } from "./attached-file.ts";

export const MODES = ["ask", "auto", "read-only"] as const satisfies readonly AgentMode[];

export interface RunOptions {
  readonly isChat: boolean;
  /** What the first turn begins with; undefined only in a chat. */
  readonly prompt: readonly ContentBlock[] | undefined;
  readonly model: string | undefined;
  readonly mode: AgentMode;
  readonly role: string | undefined;
  readonly maxSteps: number | undefined;
  readonly maxTokens: number | undefined;
  readonly verbose: boolean;
  /** The conversation to go on with: an id or its beginning, or the last one of this folder. */
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
    // Where nobody can be asked, `ask` would only refuse. The rules of the config hold in any mode.
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
  if (typed === "-" && isChat) throw usage("A chat reads its prompts from stdin by itself; leave the - out.");
  const text = typed === "-" ? (await readAll(stdin)).trim() : typed.trim();
  const files = await Promise.all(flags.list("file").map((path) => attachedFile(path, cwd)));
  if (text !== "") return [...files, { type: "text", text }];
  if (!isChat) throw usage("There is no prompt.", 'toolcrib run "…", or - to read it from stdin, or -i for a chat.');
  if (files.length > 0) throw usage("--file goes with a prompt; give one.");
  return undefined;
}

function usage(message: string, hint?: string): ToolcribError {
  return new ToolcribError("invalid_arguments", message, hint === undefined ? {} : { hint });
}
