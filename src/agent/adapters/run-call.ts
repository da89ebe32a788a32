/**
 * Shared by the adapters: a call by name, and content as models read it. Nothing is thrown: a model reads errors like
 * results.
 */
import { describeBlock, modelContent, textBlock } from "../../model/content.ts";
import { asToolcribError, errorTextForModel } from "../../model/errors.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { Tool, ToolResult, ToolUpdate } from "../../model/tool.ts";
import { checkModelArguments } from "../../tools/check-arguments.ts";

export interface RunCallOptions {
  readonly signal?: AbortSignal;
  readonly onUpdate?: ToolUpdate;
}

export interface CallByName {
  readonly id: string;
  readonly name: string;
  /** An object, or the same as JSON text. */
  readonly input: unknown;
}

export async function runCall(
  tools: readonly Tool[],
  { id, name, input }: CallByName,
  { signal, onUpdate }: RunCallOptions = {},
): Promise<ToolResult> {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) return failure(`not_found: There is no tool "${name}".`);
  const args = parseInput(input);
  if (args === undefined) return failure(`invalid_arguments: The arguments of ${name} are not a JSON object.`);
  return orFailure(async () => tool.execute(id, await checkModelArguments(tool, args), signal, onUpdate));
}

/** The result of a tool; one that says so where it throws. */
export async function orFailure(run: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await run();
  } catch (thrown) {
    return failure(errorTextForModel(asToolcribError(thrown).toObject()));
  }
}

export type ReadableBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly data: string; readonly mimeType: string };

/** Text and images; all else as text. */
export function readableBlocks({ content, isError = false }: ToolResult): ReadableBlock[] {
  return modelContent({ content, isError }).map(
    (block) => imageOf(block) ?? { type: "text", text: describeBlock(block) },
  );
}

export function readableText(result: ToolResult): string {
  return modelContent({ content: result.content, isError: result.isError ?? false })
    .map(describeBlock)
    .join("\n");
}

function imageOf({ type, data, mimeType }: ContentBlock): ReadableBlock | undefined {
  if (type !== "image" || typeof data !== "string" || typeof mimeType !== "string") return undefined;
  return { type: "image", data, mimeType };
}

function parseInput(input: unknown): JsonObject | undefined {
  if (isJsonObject(input)) return input;
  if (input === undefined || input === null || input === "") return {};
  return typeof input === "string" ? parseJsonObject(input) : undefined;
}

function failure(text: string): ToolResult {
  return { content: [textBlock(text)], isError: true };
}
