/** Operations on resources and prompts, and on what servers ask meanwhile. Every use goes through the hub like a tool call. */
import { expandTemplate, templateVariables } from "../../../catalog/uri-template.ts";
import type { PromptInfo, ResourceInfo } from "../../../contract/catalog-schemas.ts";
import type { CheckedInput } from "../../../contract/operations.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { PromptCapability, ResourceCapability, TemplateCapability } from "../../../model/capability.ts";
import { isJsonObject } from "../../../model/json.ts";
import type { Session } from "../../../sessions/session.ts";
import { resultOrThrow, titleAndDescription } from "./catalog-handlers.ts";
import { containsText, type DeepReadonly, handlersOf, invalidInput, pageOf } from "./operation-handler.ts";

export const resourceHandlers = handlersOf({
  listResources(input, { session }, { hub }) {
    const { resources, templates } = hub.view(session);
    const matching = [...resources, ...templates].filter(
      (capability) => capability.name === (input.uri ?? capability.name) && matchesFilter(capability, input),
    );
    const { entries, total, next } = pageOf(matching, input, ({ kind, name }) => `${kind} ${name}`);
    const followable = sourcesThatReport(hub, session);
    return { resources: entries.map((resource) => resourceInfo(resource, followable)), total, ...next };
  },

  async readResource({ uri: given, variables, questions: asks }, context, { hub, questions }) {
    const { session, signal, onProgress, clientInfo } = context;
    const uri = variables === undefined ? given : uriOf(given, variables);
    const client = asks ? questions.client(context, uri) : undefined;
    const result = resultOrThrow(await hub.read({ session, uri, signal, onProgress, clientInfo, client }));
    return { ...result, contents: objectsIn(result.contents) };
  },

  listPrompts(input, { session }, { hub }) {
    const matching = hub
      .view(session)
      .prompts.filter(
        (capability) => capability.name === (input.name ?? capability.name) && matchesFilter(capability, input),
      );
    const { entries, total, next } = pageOf(matching, input, ({ name }) => name);
    return { prompts: entries.map(promptInfo), total, ...next };
  },

  async getPrompt({ promptName: name, args, questions: asks }, context, { hub, questions }) {
    const { session, signal, onProgress, clientInfo } = context;
    const client = asks ? questions.client(context, name) : undefined;
    const prompt = { session, name, arguments: args, signal, onProgress, clientInfo, client };
    const result = resultOrThrow(await hub.prompt(prompt));
    return { ...result, messages: objectsIn(result.messages) };
  },

  async completeArgument({ promptName, uri, argument: name, value, known }, { session, signal, clientInfo }, { hub }) {
    if ((promptName === undefined) === (uri === undefined))
      throw invalidInput([{ path: "promptName", message: "or `uri` must be given, and not both" }]);
    const ref =
      promptName === undefined
        ? ({ type: "ref/resource", uri: uri ?? "" } as const)
        : ({ type: "ref/prompt", name: promptName } as const);
    const argument = { name, value };
    const context = known === undefined ? undefined : { arguments: known };
    const outcome = await hub.internals.complete(session, { ref, argument, context, signal, clientInfo });
    const { completion } = resultOrThrow(outcome);
    const found = isJsonObject(completion) ? completion : {};
    const { values, total, hasMore } = found;
    return {
      values: Array.isArray(values) ? values.filter((each) => typeof each === "string") : [],
      ...(typeof total === "number" ? { total } : {}),
      ...(typeof hasMore === "boolean" ? { hasMore } : {}),
    };
  },

  async followResource({ uri }, context, { hub, followed }) {
    const { session, signal, clientInfo } = context;
    // An update may come before the answer does.
    const stop = followed.add(context, uri);
    try {
      resultOrThrow(await hub.internals.subscribe(session, { uri, signal, clientInfo }));
    } catch (error) {
      stop();
      throw error;
    }
    return { uri };
  },

  async unfollowResource({ uri }, { session, signal, clientInfo }, { hub, followed }) {
    followed.delete(session, uri);
    resultOrThrow(await hub.internals.unsubscribe(session, { uri, signal, clientInfo }));
    return { uri };
  },

  listQuestions: (_input, { caller }, { questions }) => ({ questions: questions.of(caller) }),

  answerQuestion(input, { caller }, { questions }) {
    questions.answer(caller, input);
    return { questionId: input.questionId, action: input.action };
  },
});

/** Servers return what they like; the contract promises a list of objects. */
function objectsIn<Item extends object>(list: readonly Item[] | undefined): Item[] {
  const items: readonly Item[] = Array.isArray(list) ? list : [];
  return items.filter((item) => isJsonObject(item));
}

function uriOf(template: string, variables: Readonly<Record<string, string | readonly string[]>>): string {
  const known = templateVariables(template);
  const missing = known.filter(({ name, required }) => required && (variables[name] ?? "").length === 0);
  const unknown = Object.keys(variables).filter((name) => !known.some((variable) => variable.name === name));
  const issues = [
    ...missing.map(({ name }) => ({ path: `variables.${name}`, message: "is missing" })),
    ...unknown.map((name) => ({ path: `variables.${name}`, message: "is not a variable of the template" })),
  ];
  if (issues.length > 0) throw invalidInput(issues);
  return expandTemplate(template, variables);
}

/** Servers that report changes of their resources. */
function sourcesThatReport(hub: Hub, session: Session): ReadonlySet<string> {
  const reports = [...hub.servers.list(), ...session.own.servers()].filter(({ capabilities: { resources } }) => {
    return isJsonObject(resources) && resources["subscribe"] === true;
  });
  return new Set(reports.map(({ id }) => id));
}

function matchesFilter(
  { name, origin, definition }: ResourceCapability | TemplateCapability | PromptCapability,
  { serverId, q }: CheckedInput<"listResources" | "listPrompts">,
): boolean {
  if (serverId !== undefined && origin.source !== serverId) return false;
  return containsText(q, [name, definition.name, definition.title, definition.description]);
}

function resourceInfo(
  resource: ResourceCapability | TemplateCapability,
  followable: ReadonlySet<string>,
): DeepReadonly<ResourceInfo> {
  const { kind, name, origin, definition } = resource;
  const { mimeType } = definition;
  return {
    uri: name,
    serverId: origin.source,
    server: origin.source,
    name: typeof definition.name === "string" ? definition.name : name,
    ...titleAndDescription(definition),
    ...(typeof mimeType === "string" ? { mimeType } : {}),
    template: kind === "template",
    ...(kind === "template" ? { variables: templateVariables(name).map((variable) => variable.name) } : {}),
    ...(followable.has(origin.source) ? { followable: true } : {}),
  };
}

function promptInfo({ name, origin, definition }: PromptCapability): DeepReadonly<PromptInfo> {
  const given: unknown = definition.arguments;
  return {
    name,
    serverId: origin.source,
    mcpName: origin.name,
    server: origin.source,
    prompt: origin.name,
    ...titleAndDescription(definition),
    arguments: Array.isArray(given) ? given.filter(isJsonObject) : [],
  };
}
