/** Resources and prompts. */
import type { PromptInfo, ResourceInfo } from "../../../../contract/catalog.ts";
import type { PromptCapability, ResourceCapability, TemplateCapability } from "../../../../model/capability.ts";
import { isJsonObject } from "../../../../model/json.ts";
import { resultOf } from "../call-tool.ts";
import type { Handlers } from "../operation.ts";
import { pageOf } from "../paging.ts";
import type { Shown } from "../shown.ts";

export const catalogHandlers: Handlers<"listResources" | "readResource" | "listPrompts"> = {
  listResources(input, { session }, { hub }) {
    const { resources, templates } = hub.view(session);
    const matching = [...resources, ...templates].filter((capability) => fits(capability, input));
    const { entries, total, next } = pageOf(matching, input, ({ kind, name }) => `${kind} ${name}`);
    return { resources: entries.map(resourceInfo), total, ...next };
  },

  async readResource({ uri }, { session, signal, onProgress }, { hub }) {
    return resultOf(await hub.read(session, { uri, signal, onProgress }));
  },

  listPrompts(input, { session }, { hub }) {
    const matching = hub.view(session).prompts.filter((capability) => fits(capability, input));
    const { entries, total, next } = pageOf(matching, input, ({ name }) => name);
    return { prompts: entries.map(promptInfo), total, ...next };
  },
};

interface Filter {
  readonly serverId?: string | undefined;
  readonly q?: string | undefined;
}

function fits(
  { name, origin, definition }: ResourceCapability | TemplateCapability | PromptCapability,
  { serverId, q }: Filter,
): boolean {
  if (serverId !== undefined && origin.source !== serverId) return false;
  if (q === undefined) return true;
  const part = q.toLowerCase();
  const texts: unknown[] = [name, definition.name, definition.title, definition.description];
  return texts.some((text) => typeof text === "string" && text.toLowerCase().includes(part));
}

function resourceInfo({
  kind,
  name,
  origin,
  definition,
}: ResourceCapability | TemplateCapability): Shown<ResourceInfo> {
  const { mimeType } = definition;
  return {
    uri: name,
    server: origin.source,
    name: typeof definition.name === "string" ? definition.name : name,
    ...about(definition),
    ...(typeof mimeType === "string" ? { mimeType } : {}),
    template: kind === "template",
  };
}

function promptInfo({ name, origin, definition }: PromptCapability): Shown<PromptInfo> {
  const given: unknown = definition.arguments;
  return {
    name,
    server: origin.source,
    prompt: origin.name,
    ...about(definition),
    arguments: Array.isArray(given) ? given.filter(isJsonObject) : [],
  };
}

/** What a server wrote as null is as good as absent. */
function about({ title, description }: { readonly title?: unknown; readonly description?: unknown }): {
  title?: string;
  description?: string;
} {
  return {
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
  };
}
