// The same tool as a plugin, for `toolcrib run --config examples/agent/toolcrib.json "How many bolts are left?"`.
export default function register(api) {
  api.registerTool({
    name: "stock",
    description: "How many pieces of a part are in stock.",
    parameters: {
      type: "object",
      properties: { part: { type: "string", description: "Name of the part, such as bolt." } },
      required: ["part"],
    },
    annotations: { readOnlyHint: true },
    async execute(_toolCallId, { part }) {
      const pieces = { bolt: 120, nut: 7 }[part];
      if (pieces === undefined) {
        return { content: [{ type: "text", text: `There is no part "${String(part)}".` }], isError: true };
      }
      return { content: [{ type: "text", text: `${pieces} pieces` }], details: { part, pieces } };
    },
  });
}
