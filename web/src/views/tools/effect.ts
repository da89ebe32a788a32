/** What a tool does to things, by the hints of its server. */
export type Effect = "read" | "write" | "destructive";

/** A tool that does not say that it only reads may write; only one that says so destroys. */
export function effectOf(annotations: Readonly<Record<string, unknown>> | undefined): Effect {
  if (annotations?.["readOnlyHint"] === true) return "read";
  return annotations?.["destructiveHint"] === true ? "destructive" : "write";
}

interface NamedTool {
  readonly name: string;
  readonly mcpName: string;
}

/** Patterns that name all tools of a server, also those to come where its names begin alike. */
export function patternsOf(tools: readonly NamedTool[]): readonly string[] {
  const [first] = tools;
  if (first === undefined) return [];
  const prefix = first.name.endsWith(first.mcpName) ? first.name.slice(0, -first.mcpName.length) : "";
  const isShared = prefix !== "" && tools.every(({ name }) => name.startsWith(prefix));
  return isShared ? [`${prefix}*`] : tools.map(({ name }) => name);
}
