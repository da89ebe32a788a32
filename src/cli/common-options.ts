/** Options that several commands have. */
import type { OptionEntry } from "./command.ts";

export const timeout: OptionEntry = {
  flags: "--timeout <ms>",
  summary: "milliseconds that the command may take",
  kind: "milliseconds",
};
export const role: OptionEntry = { flags: "--role <name>", summary: "see and use only what this role may" };
export const yes: OptionEntry = { flags: "--yes", summary: "answer yes, once, where a rule asks; on a terminal only" };

export const logOptions: readonly OptionEntry[] = [
  { flags: "--log-format <format>", summary: "pretty or json" },
  { flags: "--log-level <level>", summary: "debug, info, warn, error or silent" },
];
