// A plugin: name this file in "plugins" of toolcrib.json, and its tools stand beside those of the MCP servers.
//
//   { "mcpServers": {}, "plugins": ["./tools.mjs"] }
//   $ toolcrib call word_count text="one two three"

/** A plain tool. Its arguments have been checked against `parameters` when `execute` runs. */
const wordCount = {
  name: "word_count",
  label: "Word count",
  description: "Counts the words and characters of a text.",
  parameters: {
    type: "object",
    properties: { text: { type: "string", description: "The text to count." } },
    required: ["text"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
  async execute(_toolCallId, { text }) {
    const words = text.split(/\s+/).filter(Boolean).length;
    return {
      content: [{ type: "text", text: `${words} words, ${text.length} characters` }],
      details: { words, characters: text.length },
    };
  },
};

/** A factory: called once for each session, so that the tool can keep something for that session alone. */
function notes({ sessionId = "default" }) {
  const kept = [];
  return {
    name: "note",
    description: "Keeps a note for this session and shows all of them.",
    parameters: { type: "object", properties: { text: { type: "string", minLength: 1 } }, required: ["text"] },
    async execute(_toolCallId, { text }, signal, onUpdate) {
      onUpdate?.({ content: [{ type: "text", text: `writing note ${kept.length + 1}` }] });
      signal?.throwIfAborted();
      kept.push(text);
      return { content: [{ type: "text", text: kept.join("\n") }], details: { sessionId, count: kept.length } };
    },
  };
}

export default function register(api) {
  api.registerTool(wordCount);
  api.registerTool(notes);
}
