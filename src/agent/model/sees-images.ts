/** Models that are known to look at images. A wrong yes makes the provider refuse the whole request, so others are a no. */
const SEEING: readonly RegExp[] = [
  /^claude-(?!2|instant)/,
  /^(chatgpt-)?gpt-(4o|4\.[1-9]|4-turbo|[5-9]|\d\d)/,
  /^o[1-9](?!-mini|-preview|\d|[a-z])/,
  /^o4-mini/,
  /^gemini-/,
  /llava|pixtral|[-_.\d]vl\b|\bvision\b/,
];

/** By its name, with or without a maker's prefix such as `anthropic/`. */
export function seesImages(model: string): boolean {
  const name = model.toLowerCase().split("/").at(-1) ?? "";
  return SEEING.some((pattern) => pattern.test(name));
}
