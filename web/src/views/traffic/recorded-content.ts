/** Arguments or a result as the audit log has them: JSON, which may have been cut. */
type Content = { readonly value: unknown } | { readonly texts: readonly string[] } | { readonly cut: string };

export function recordedContent(text: string): Content {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { cut: text };
  }
  return textsOf(value) ?? { value };
}

/** The texts of a result that has nothing else; most have. */
function textsOf(value: unknown): { readonly texts: readonly string[] } | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { content, structuredContent } = value as Readonly<Record<string, unknown>>;
  if (!Array.isArray(content) || content.length === 0 || structuredContent !== undefined) return undefined;
  const texts = content.map((part: unknown) =>
    typeof part === "object" && part !== null && "text" in part && typeof part.text === "string"
      ? part.text
      : undefined,
  );
  return texts.every((each) => each !== undefined) ? { texts } : undefined;
}
