import type { ServerTemplate } from "../../model/skill.ts";
import { looksLikeCredential } from "../../secrets/looks-like-secret.ts";
import { placeholdersIn } from "./placeholders.ts";

interface TemplateString {
  readonly text: string;
  /** It is the value of a variable, a header or an option that holds a credential, going by its name. */
  readonly credential: boolean;
}

/** Every string of a template in which a placeholder may stand. */
export function templateStrings(template: ServerTemplate): TemplateString[] {
  const plain = [template.command, template.cwd, template.url];
  const named = [...Object.entries(template.env ?? {}), ...Object.entries(template.headers ?? {})];
  return [
    ...plain.flatMap((text) => (text === undefined ? [] : [{ text, credential: false }])),
    ...argumentStrings(template.args ?? []),
    ...named.map(([key, text]) => ({ text, credential: looksLikeCredential(key) })),
  ];
}

/** `--token=${X}`, `--token ${X}`. */
function argumentStrings(args: readonly string[]): TemplateString[] {
  return args.map((text, index) => {
    const [, ownOption] = /^--?([A-Za-z][\w-]*)=/.exec(text) ?? [];
    const [, optionBefore] = text.startsWith("-") ? [] : (/^--?([A-Za-z][\w-]*)$/.exec(args[index - 1] ?? "") ?? []);
    return { text, credential: looksLikeCredential(ownOption ?? optionBefore ?? "") };
  });
}

/** Names in its placeholders, those of variables too. */
export function parametersUsed(template: ServerTemplate): Set<string> {
  return new Set(templateStrings(template).flatMap(({ text }) => placeholdersIn(text).map((one) => one.name)));
}
