/** How a server is started or reached: what a skill says about it, completed from its package or from the table. */
import type { ServerParameter, ServerTemplate } from "../../model/skill.ts";
import { type Field, type FieldPath, type Fields, scalarText, type Warn, warnOfType } from "./fields.ts";
import { commandWords, wordList } from "./launch-words.ts";
import { readNamedValues } from "./named-values.ts";
import { launchedPackage, launchOf, type PackageReference, registryOf } from "./package-reference.ts";
import { hasStrayOpening } from "./placeholders.ts";
import { templateStrings } from "./template-strings.ts";
import { type WellKnownServer, wellKnownByPackage } from "./well-known.ts";

/** What a skill itself says. */
interface TemplateRead {
  readonly draft: ServerTemplate;
  /** Declared in the place of a value. */
  readonly parameters: readonly ServerParameter[];
}

const TRANSPORTS: Readonly<Record<string, "stdio" | "http" | "sse">> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamablehttp: "http",
  sse: "sse",
};

export function readTemplate(fields: Fields, warn: Warn): TemplateRead {
  const transport = transportOf(fields.take("transport", "type", "transportType"), warn);
  const [command, ...words] = commandWords(fields.take("command", "cmd"), warn);
  const argsField = fields.take("args", "arguments");
  const args = argsField === undefined ? words : [...words, ...wordList(argsField, warn)];
  const env = readNamedValues(fields.take("env", "environment"), warn);
  const headers = readNamedValues(fields.take("headers", "httpHeaders"), warn);
  const cwd = fields.takeText(warn, "cwd", "workingDir", "workingDirectory");
  const url = fields.takeText(warn, "url", "serverUrl", "httpUrl");
  const isRemote = url !== undefined && (command === undefined || transport === "http" || transport === "sse");
  if (url !== undefined && command !== undefined) {
    const kept = isRemote ? "address" : "command";
    warn("SERVER_AMBIGUOUS", `The server has a command and an address; the ${kept} is used.`, fields.path);
  }
  const parameters = [...env.parameters, ...headers.parameters];
  const draft: ServerTemplate = isRemote
    ? {
        url,
        ...(headers.values === undefined ? {} : { headers: headers.values }),
        ...(transport === "http" || transport === "sse" ? { transport } : {}),
      }
    : {
        ...(command === undefined ? {} : { command }),
        ...(args.length === 0 ? {} : { args }),
        ...(env.values === undefined ? {} : { env: env.values }),
        ...(cwd === undefined ? {} : { cwd }),
      };
  return { draft, parameters };
}

export interface Completed {
  readonly template: ServerTemplate;
  /** Where the rest came from. */
  readonly known?: WellKnownServer;
  /** The skill says itself how the server is started. */
  readonly isExplicit: boolean;
}

/** undefined if nothing says how the server is started. `named` is the well-known server of the same name. */
export function completeTemplate(
  draft: ServerTemplate,
  reference: PackageReference | undefined,
  named: WellKnownServer | undefined,
): Completed | undefined {
  if (draft.url !== undefined) return { template: draft, isExplicit: true };
  if (draft.command !== undefined) {
    const args = draft.args ?? [];
    const registry = registryOf(draft.command);
    const isWhole =
      reference === undefined || registry === undefined || launchedPackage(draft.command, args) !== undefined;
    if (isWhole) return { template: draft, isExplicit: true };
    // `command: npx` beside `package`, with nothing else or arguments for the server only.
    return { template: { ...draft, ...launchOf({ ...reference, registry }, args) }, isExplicit: true };
  }
  const known = reference === undefined ? named : wellKnownByPackage(reference);
  const launched = reference ?? known?.package;
  const base: ServerTemplate | undefined =
    known?.template ?? (launched === undefined ? undefined : launchOf(launched, []));
  if (base === undefined) return undefined;
  const env = { ...base.env, ...draft.env };
  return {
    template: {
      ...base,
      ...(draft.args === undefined || launched === undefined ? {} : launchOf(launched, draft.args)),
      ...(Object.keys(env).length === 0 ? {} : { env }),
      ...(draft.cwd === undefined ? {} : { cwd: draft.cwd }),
    },
    ...(known === undefined ? {} : { known }),
    isExplicit: false,
  };
}

/** A skill's author has no say in which secrets of the machine a server gets. */
export function isAcceptable(template: ServerTemplate, path: FieldPath, warn: Warn): boolean {
  const texts = templateStrings(template).map(({ text }) => text);
  const names = Object.keys({ ...template.env, ...template.headers });
  if ([...texts, ...names].some((text) => text.includes("\0"))) {
    warn("INVALID_TEMPLATE", "A text of the template holds a NUL character; the template is left out.", path);
    return false;
  }
  if (texts.some((text) => /secret:\/\//i.test(text))) {
    const message = "The template names a secret of this machine and is left out; a ${PARAMETER} belongs there.";
    warn("REFERENCE_IN_TEMPLATE", message, path);
    return false;
  }
  if (texts.some(hasStrayOpening))
    warn("INVALID_PLACEHOLDER", "A text of the template has a ${ that begins no placeholder; it stays as it is.", path);
  return true;
}

function transportOf(field: Field | undefined, warn: Warn): "stdio" | "http" | "sse" | undefined {
  if (field === undefined) return undefined;
  const word = (scalarText(field.value) ?? "").toLowerCase().replaceAll("_", "-");
  const known = Object.hasOwn(TRANSPORTS, word) ? TRANSPORTS[word] : undefined;
  if (known === undefined) warnOfType(field, "stdio, http or sse", warn);
  return known;
}
