/** Clients that others have written, behind one face, and what each must be able to do with a gateway. */
import {
  Client as NewClient,
  type StreamableHTTPClientTransport as NewHttp,
  type VersionNegotiationMode,
} from "@modelcontextprotocol/client";
import type { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "vitest";

/** What every client must be able to do, whatever its API looks like. */
export interface Judged {
  tools(): Promise<string[]>;
  call(name: string, args: Record<string, unknown>, onProgress?: (step: number) => void): Promise<string>;
  read(uri: string): Promise<string>;
  resources(): Promise<string[]>;
  prompt(name: string): Promise<string>;
  /** Methods that the server has asked for. */
  readonly asked: string[];
  close(): Promise<void>;
}

const CAPABILITIES = { sampling: {}, elicitation: { form: {} } };
const SAMPLED = { role: "assistant" as const, model: "m", content: { type: "text" as const, text: "sampled words" } };

export async function oldClient(transport: Transport): Promise<Judged> {
  const client = new OldClient({ name: "old", version: "1" }, { capabilities: CAPABILITIES });
  const asked: string[] = [];
  client.setRequestHandler(CreateMessageRequestSchema, ({ method }) => {
    asked.push(method);
    return SAMPLED;
  });
  client.setRequestHandler(ElicitRequestSchema, ({ method }) => {
    asked.push(method);
    return { action: "decline" as const };
  });
  await client.connect(transport);
  return {
    asked,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, onProgress) =>
      JSON.stringify(
        await client.callTool(
          { name, arguments: args },
          undefined,
          onProgress && { onprogress: ({ progress }) => onProgress(progress) },
        ),
      ),
    read: async (uri) => JSON.stringify(await client.readResource({ uri })),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    prompt: async (name) => JSON.stringify(await client.getPrompt({ name })),
    close: () => client.close(),
  };
}

export async function newClient(transport: NewHttp | NewStdio, mode: VersionNegotiationMode): Promise<Judged> {
  const client = new NewClient(
    { name: "new", version: "1" },
    { capabilities: CAPABILITIES, versionNegotiation: { mode } },
  );
  const asked: string[] = [];
  client.setRequestHandler("sampling/createMessage", () => {
    asked.push("sampling/createMessage");
    return SAMPLED;
  });
  client.setRequestHandler("elicitation/create", () => {
    asked.push("elicitation/create");
    return { action: "decline" as const };
  });
  await client.connect(transport);
  const era = mode === "legacy" ? "2025-11-25" : "2026-07-28";
  expect(client.getNegotiatedProtocolVersion()).toBe(era);
  return {
    asked,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, onProgress) =>
      JSON.stringify(
        await client.callTool(
          { name, arguments: args },
          onProgress && { onprogress: ({ progress }) => onProgress(progress) },
        ),
      ),
    read: async (uri) => JSON.stringify(await client.readResource({ uri })),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    prompt: async (name) => JSON.stringify(await client.getPrompt({ name })),
    close: () => client.close(),
  };
}

/** What the server asks for meanwhile. */
export const ASKED = ["sampling/createMessage", "elicitation/create"];

/** Does everything that a client does with the everything server, whose id is `e`. */
export async function judge(client: Judged): Promise<void> {
  const tools = await client.tools();
  expect(tools).toEqual(
    expect.arrayContaining(["e__echo", "e__trigger-sampling-request", "e__trigger-elicitation-request"]),
  );
  expect(await client.call("e__echo", { message: "hello" })).toContain("Echo: hello");
  expect(await client.call("e__get-structured-content", { location: "New York" })).toContain("structuredContent");
  const [uri = ""] = await client.resources();
  expect(await client.read(uri)).toContain(uri);
  expect(await client.prompt("e__simple-prompt")).toContain("messages");
  const steps: number[] = [];
  // The SDK drops steps that come in one piece with the answer: apart enough for a busy machine.
  await client.call("e__trigger-long-running-operation", { duration: 1.6, steps: 4 }, (step) => steps.push(step));
  expect(steps.slice(0, 3)).toEqual([1, 2, 3]);
  expect(await client.call("e__trigger-sampling-request", { prompt: "hi", maxTokens: 5 })).toContain("sampled words");
  await client.call("e__trigger-elicitation-request", {});
  await expect(client.read("none://such")).rejects.toThrow(/none:\/\/such/);
}
