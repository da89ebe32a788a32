/** A command that runs at the hub: the lines between the two processes. */
import { z } from "zod";

export const COMMAND_PATH = "/command";
export const COMMAND_PROTOCOL = "toolcrib-command";

const TerminalSchema = z.object({ isTTY: z.boolean(), columns: z.int().positive().optional() });

/** The first line. */
export const CommandStartSchema = z.object({
  argv: z.array(z.string()),
  cwd: z.string(),
  /** Variables that say how to show text, such as NO_COLOR. */
  env: z.record(z.string(), z.string()),
  stdin: TerminalSchema,
  stdout: TerminalSchema,
  stderr: TerminalSchema,
});

export type CommandStart = z.output<typeof CommandStartSchema>;

/** To the hub. */
export type InputFrame = { readonly input: string } | { readonly inputEnded: true };
/** From the hub. */
export type OutputFrame = { readonly out: string } | { readonly err: string } | { readonly exit: number };

export const SHOWN_VARIABLES = ["NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM", "NODE_DISABLE_COLORS"];
