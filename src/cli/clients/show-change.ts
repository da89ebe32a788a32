/** The diff of another program's file, in whatever format. */
import type { AgentClient } from "../../clients/client.ts";
import { jsonScalars } from "../../files/edit/scalars.ts";
import { tomlScalars } from "../../files/edit/toml/toml-scalars.ts";
import { yamlScalars } from "../../files/edit/yaml/yaml-scalars.ts";
import type { Invocation } from "../command.ts";
import { showDiff } from "../config-target.ts";
import { maskConfig, type ReadScalars } from "../mask-config.ts";

interface Change {
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
}

const READERS: Readonly<Record<AgentClient["format"], ReadScalars>> = {
  jsonc: jsonScalars,
  json5: jsonScalars,
  yaml: yamlScalars,
  toml: tomlScalars,
};

export function showClientDiff(
  invocation: Invocation,
  client: AgentClient,
  { file, before, after }: Change,
  facts: Readonly<Record<string, unknown>>,
): void {
  const mask = (text: string): string => maskConfig(text, READERS[client.format]);
  showDiff(invocation, file, before ?? "", after ?? "", facts, mask);
}
