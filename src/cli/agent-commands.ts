/** The agent's part of the table of commands. */
import type { CommandEntry, OptionEntry } from "./command.ts";
import { logOptions, role, timeout, yes } from "./common-options.ts";

const model: OptionEntry = {
  flags: "--model <id>",
  summary: "<provider>/<model>, or one that the config names; agent.model if absent",
};

export const AGENT_COMMANDS: readonly CommandEntry[] = [
  {
    name: "acp",
    summary: "an agent for editors: the Agent Client Protocol over stdio",
    arguments: [],
    options: [
      model,
      { flags: "--mode <mode>", summary: "what sessions begin with: ask, auto or read-only; ask if absent" },
      role,
      { flags: "--log-file <file>", summary: "write the log to this file instead of stderr" },
      ...logOptions,
    ],
    examples: ["toolcrib acp", "toolcrib acp --model ollama/qwen3 --log-file /tmp/toolcrib-acp.log --log-level debug"],
    lasting: true,
    load: () => import("./commands/acp.ts"),
  },
  {
    name: "run",
    summary: "let the built-in agent answer a prompt with all tools, or chat with it",
    arguments: [{ syntax: "[prompt...]", summary: "what to do; - reads it from stdin" }],
    options: [
      { flags: "-i, --interactive", summary: "chat: one prompt after the other; /help lists its commands" },
      model,
      {
        flags: "--mode <mode>",
        summary: "ask, auto or read-only; ask on a terminal, auto without one",
      },
      { flags: "--file <path>", summary: "text or image that goes with the prompt; may be repeated", kind: "list" },
      { flags: "--continue", summary: "go on with the last conversation of this folder" },
      { flags: "--resume <id>", summary: "go on with this conversation; the beginning of its id is enough" },
      { flags: "--max-steps <n>", summary: "answers of the model at most, instead of agent.maxSteps" },
      { flags: "--max-tokens <n>", summary: "tokens at most, input and output together, instead of agent.maxTokens" },
      { flags: "--verbose", summary: "show thoughts, tokens and the id of the conversation" },
      role,
      yes,
      timeout,
    ],
    examples: [
      'toolcrib run "What changed in this folder today?"',
      "git diff | toolcrib run --model ollama/qwen3 -",
      'toolcrib run --file error.log --json "What went wrong?"',
      "toolcrib run -i --continue",
    ],
    load: () => import("./commands/run.ts"),
  },
];
