/** The names that examples in the documents use and the text around them introduces. */
import type * as library from "toolcrib";
import type * as agents from "toolcrib/agent";
import type { ToolcribClient } from "toolcrib/client";

interface ToolUse {
  type: "tool_use";
  id: string;
  name: string;
  input: unknown;
}

declare global {
  const hub: library.Hub;
  const session: library.Session;
  const registry: library.ToolRegistry;
  const myTool: library.Tool;
  const createHub: typeof library.createHub;
  const createAgent: typeof agents.createAgent;
  const client: ToolcribClient;
  let tools: library.Tool[];
  const token: string;
  const id: string;
  const model: string;
  const max_tokens: number;
  const prompt: string;
  const messages: object[];
  const signal: AbortSignal;
  function show(content: unknown): void;
  function inject(name: string, instructions: string): void;
  function confirm(question: string, options: { signal?: AbortSignal }): Promise<boolean>;

  /** As the SDK of OpenAI types what its tools are and what it returns. */
  const openai: {
    chat: {
      completions: {
        create(request: {
          model: string;
          messages: object[];
          tools: {
            type: "function";
            function: { name: string; description?: string; parameters?: Record<string, unknown> };
          }[];
        }): Promise<{
          choices: {
            message: {
              role: "assistant";
              content: string | null;
              tool_calls?: (
                | { id: string; type: "function"; function: { name: string; arguments: string } }
                | { id: string; type: "custom"; custom: { name: string; input: string } }
              )[];
            };
          }[];
        }>;
      };
    };
  };
  /** As the SDK of Anthropic does. */
  const anthropic: {
    messages: {
      create(request: {
        model: string;
        max_tokens: number;
        messages: object[];
        tools: { name: string; description?: string; input_schema: { type?: unknown } }[];
      }): Promise<{ content: (ToolUse | { type: "text"; text: string })[] }>;
    };
  };
}
