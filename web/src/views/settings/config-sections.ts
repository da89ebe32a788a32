/** The values of the config in sections, as they are searched and shown. */
import type { ConfigView } from "../../../../src/contract/settings-schemas.ts";
import { type Message, t } from "../../messages/messages.ts";
import { settings } from "../../messages/settings.ts";

export type ConfigValue = ConfigView["values"][number];
type Origin = ConfigValue["origin"];
type Tone = "neutral" | "accent" | "ok" | "warn" | "bad" | "info";

export const ORIGIN_WORDS: Readonly<Record<Origin, { readonly word: Message; readonly tone: Tone }>> = {
  default: { word: settings.fromDefault, tone: "neutral" },
  file: { word: settings.fromFile, tone: "accent" },
  environment: { word: settings.fromEnvironment, tone: "info" },
  store: { word: settings.fromStore, tone: "ok" },
  "command line": { word: settings.fromCommandLine, tone: "info" },
  code: { word: settings.fromCode, tone: "accent" },
};

export interface ConfigSection {
  readonly name: string;
  readonly values: readonly ConfigValue[];
}

/** Keys without a dot have no section of their own. */
const REST = "general";

export function sectionsOf(
  values: readonly ConfigValue[],
  { q = "", origin }: { readonly q?: string | undefined; readonly origin?: string | undefined },
): readonly ConfigSection[] {
  const words = q.toLowerCase();
  const sections = new Map<string, ConfigValue[]>();
  for (const value of values) {
    if (origin !== undefined && value.origin !== origin) continue;
    if (!`${value.key} ${valueText(value.value)} ${value.where ?? ""}`.toLowerCase().includes(words)) continue;
    const dot = value.key.indexOf(".");
    const name = dot === -1 ? REST : value.key.slice(0, dot);
    sections.set(name, [...(sections.get(name) ?? []), value]);
  }
  return [...sections].map(([name, found]) => ({ name, values: found }));
}

/** On one line, as the config would have it. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** It has parts that do not fit on a line. */
export function isLarge(value: unknown): value is object {
  return typeof value === "object" && value !== null && valueText(value).length > 60;
}

export function originOptions(
  values: readonly ConfigValue[],
  asked: string | undefined,
): readonly (readonly [value: string, word: string])[] {
  // Keys of ORIGIN_WORDS.
  return (Object.keys(ORIGIN_WORDS) as Origin[]).flatMap((origin) => {
    const count = values.filter((value) => value.origin === origin).length;
    return count === 0 && origin !== asked ? [] : [[origin, `${t(ORIGIN_WORDS[origin].word)} (${count})`] as const];
  });
}
