/** A command that runs at a hub: the lines between the two processes. */
import { z } from "zod";
import { SCOPES } from "../../model/caller.ts";

/** Commands of the hub's own user take the connection over. Commands with a token are a POST, whose response is the lines. */
export const COMMAND_PATH = "/command";
export const COMMAND_PROTOCOL = "toolcrib-command";

const TerminalSchema = z.object({ isTTY: z.boolean(), columns: z.int().positive().optional() });

export const SHOWN_VARIABLES = ["NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM", "NODE_DISABLE_COLORS"] as const;

/** The first line, or the body of the POST. */
export const CommandStartSchema = z.object({
  argv: z.array(z.string()),
  version: z.string().max(64),
  /** Needed by the command, so that it can work alone where it may not. */
  scope: z.enum(SCOPES),
  cwd: z.string(),
  pid: z.int().optional(),
  /** Variables that say how to show text, and no others. */
  env: z.partialRecord(z.enum(SHOWN_VARIABLES), z.string()),
  stdin: TerminalSchema,
  stdout: TerminalSchema,
  stderr: TerminalSchema,
  /** Of a POST: the whole input, and the files that arguments name, as base64. */
  input: z.base64().optional(),
  files: z.record(z.string(), z.base64()).optional(),
});

export type CommandStart = z.output<typeof CommandStartSchema>;

/** To the hub. */
export type InputFrame = { readonly input: string } | { readonly inputEnded: true };

/** From the hub. An empty line keeps proxies from closing a quiet response. */
export const OutputFrameSchema = z.union([
  z.object({ out: z.string() }),
  z.object({ err: z.string() }),
  z.object({
    save: z.array(
      z.object({ bytes: z.base64(), mimeType: z.string(), name: z.string().regex(/^[A-Za-z0-9_-]{1,80}$/) }),
    ),
  }),
  z.object({ exit: z.int() }),
  /** The command was not run: its caller lacks this scope. */
  z.object({ needs: z.enum(SCOPES) }),
]);

export type OutputFrame = z.output<typeof OutputFrameSchema>;
