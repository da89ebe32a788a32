/** A plain function, in the same catalog as the servers' tools. */
export default function register(api) {
  api.registerTool({
    name: "shout",
    label: "Shout",
    description: "Says a text loudly.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    execute: async (_id, { text }) => ({ content: [{ type: "text", text: String(text).toUpperCase() }] }),
  });
}
