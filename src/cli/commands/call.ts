import { text as readAll } from "node:stream/consumers";
import type { ToolCapability } from "../../model/capability.ts";
import { resultText } from "../../model/content.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import {
  type Assignment,
  buildArguments,
  invalidArguments,
  missingArguments,
  parseArgumentsObject,
  parseAssignment,
} from "../tool-arguments.ts";
import { ARGUMENT_COLUMNS, describeArguments, exampleCall } from "../argument-schema.ts";
import type { Invocation } from "../command.ts";
import { findCapability, withHub } from "../running-hub.ts";
import { partsOfBlocks, progressLine, saveTarget, showOutcome } from "../call-result.ts";

export async function run(invocation: Invocation): Promise<number> {
  const [name = "", ...typed] = invocation.args;
  const given = await readArguments(invocation, typed);
  const target = saveTarget(invocation);
  return withHub(invocation, async (running) => {
    const { hub, signal } = running;
    const tool = await findCapability(running, name, (view) => view.tools);
    if (invocation.flags.has("schema")) {
      if (tool === undefined) throw hub.missing(hub.session, name);
      return showSchema(invocation, tool);
    }
    const outcome = await hub.call(hub.session, {
      name,
      arguments: fitToSchema(invocation, given, tool),
      signal,
      onProgress: progressLine(invocation),
    });
    return showOutcome(invocation, running, outcome, {
      show: (result) => invocation.out.line(resultText(result)),
      parts: (result) => partsOfBlocks(result.content, tool?.origin.name ?? name),
      target,
    });
  });
}

type Given = { readonly object: JsonObject } | { readonly assignments: readonly Assignment[] };

/** Read before any server is started, so that a typo costs nothing. */
async function readArguments({ flags, stdin, cwd }: Invocation, typed: readonly string[]): Promise<Given> {
  const json = flags.text("args");
  if (json === undefined) return { assignments: typed.map((each) => parseAssignment(each, cwd)) };
  if (typed.length > 0) {
    throw new ToolcribError("invalid_arguments", "--args and key=value cannot be mixed.", {
      hint: "Put all arguments into the JSON object, or none.",
    });
  }
  return { object: parseArgumentsObject(json === "-" ? await readAll(stdin) : json) };
}

function fitToSchema({ out }: Invocation, given: Given, tool: ToolCapability | undefined): JsonObject {
  // Without a definition the hub refuses the call; the arguments only have to be something.
  const schema = tool?.definition.inputSchema ?? {};
  if ("object" in given) {
    const problems = missingArguments(given.object, schema);
    if (problems.length > 0) throw invalidArguments(problems);
    return given.object;
  }
  const built = buildArguments(given.assignments, schema);
  for (const warning of built.warnings) out.warn(warning);
  return built.arguments;
}

function showSchema({ out }: Invocation, { name, definition }: ToolCapability): number {
  if (out.json) {
    out.value(definition.inputSchema);
    return 0;
  }
  out.line(out.paint("bold", name));
  if (definition.description !== undefined) out.line(definition.description.trimEnd());
  out.line("");
  const rows = describeArguments(definition.inputSchema);
  if (rows.length === 0) out.line("No arguments.");
  else out.table(ARGUMENT_COLUMNS, rows);
  out.line("");
  out.line(exampleCall(name, definition.inputSchema));
  return 0;
}
