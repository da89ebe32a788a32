/** How much a model can hold, in tokens, for the gauge that some clients show. Nothing is said of models that are not here. */
const WINDOWS: readonly (readonly [pattern: RegExp, tokens: number])[] = [
  [/claude/, 200_000],
  [/gemini/, 1_048_576],
  [/gpt-4\.1/, 1_047_576],
  [/gpt-5/, 400_000],
  [/gpt-4o/, 128_000],
];

export function contextWindow(modelId: string): number | undefined {
  return WINDOWS.find(([pattern]) => pattern.test(modelId))?.[1];
}
