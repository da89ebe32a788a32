import type { ToolInfo } from "../catalog.ts";
import type { Examples } from "./example.ts";

const FINGERPRINT = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

const READ: ToolInfo = {
  name: "files__read_text_file",
  server: "files",
  tool: "read_text_file",
  title: "Read Text File",
  description: "Read the complete contents of a file as text.",
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  annotations: { readOnlyHint: true },
  fingerprint: FINGERPRINT,
  pin: "same",
};

export const CATALOG_EXAMPLES: Examples<
  "listTools" | "callTool" | "listResources" | "readResource" | "listPrompts" | "listPins" | "changePins"
> = {
  listTools: { input: { serverId: "files", q: "read", limit: 20 }, output: { tools: [READ], total: 1 } },
  callTool: {
    input: { toolName: "files__read_text_file", args: { path: "notes.txt" }, timeoutMs: 10_000 },
    output: { content: [{ type: "text", text: "Buy milk." }] },
  },
  listResources: {
    input: { serverId: "everything" },
    output: {
      resources: [
        {
          uri: "demo://resource/static/document/features.md",
          server: "everything",
          name: "features.md",
          mimeType: "text/markdown",
          template: false,
        },
        { uri: "demo://resource/dynamic/text/{resourceId}", server: "everything", name: "Text", template: true },
      ],
      total: 2,
    },
  },
  readResource: {
    input: { uri: "demo://resource/static/document/features.md" },
    output: {
      contents: [{ uri: "demo://resource/static/document/features.md", mimeType: "text/markdown", text: "# Features" }],
    },
  },
  listPrompts: {
    input: {},
    output: {
      prompts: [
        {
          name: "everything__args-prompt",
          server: "everything",
          prompt: "args-prompt",
          description: "A prompt with two arguments.",
          arguments: [{ name: "city", required: true }],
        },
      ],
      total: 1,
    },
  },
  listPins: {
    input: { state: "changed" },
    output: {
      pins: [
        {
          server: "files",
          kind: "tool",
          tool: "read_text_file",
          state: "changed",
          fingerprint: FINGERPRINT,
          pinnedAt: "2026-11-01T10:00:00.000Z",
          diff: ["~ description", '- "Read a file."', '+ "Read the complete contents of a file as text."'],
        },
      ],
      total: 1,
    },
  },
  changePins: {
    input: { action: "approve", serverId: "files", tool: "read_text_file" },
    output: { changed: [{ server: "files", kind: "tool", tool: "read_text_file" }] },
  },
};
