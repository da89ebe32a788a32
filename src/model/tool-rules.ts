/** The rules of a config as they are written: patterns, conditions on arguments, and conditions on the circumstances of a call. */
import { z } from "zod";

/** A step of the path to an argument: the key of an object, or every item of a list. */
export type ArgumentStep = { readonly key: string } | "items";

export interface ArgumentValue {
  readonly text: string;
  /** Written in quotes: no character of it is a wildcard. */
  readonly literal: boolean;
}

/** One condition on an argument: `branch=main`, `issue.labels[*]!=internal`, `amount>100`, `env in (prod, live)`. */
export interface ArgumentCondition {
  /** The path as written. */
  readonly name: string;
  /** Empty for `*`: all arguments together, as a hash. */
  readonly steps: readonly ArgumentStep[];
  readonly operator: "=" | "!=" | "<" | "<=" | ">" | ">=" | "in";
  /** One, or for `in` at least one. */
  readonly values: readonly ArgumentValue[];
}

export interface ParsedEntry {
  /** The entry without its conditions. */
  readonly base: string;
  readonly conditions: readonly ArgumentCondition[];
}

/**
 * What comes before the conditions: a glob on names, a class, a tag, or one exact name of a tool. URIs have conditions of no kind,
 * so parentheses in them are theirs.
 */
const WITH_CONDITIONS = /^(tag:[^(]*|=tool:[A-Za-z0-9_-]+|(?!=)[^(:/\\%\s]+)\((.*)\)$/s;

/** Meant as conditions, and not where they can be read: as a name it would match nothing, and a deny would deny nothing. */
const MISPLACED_CONDITIONS = /^(?:tag:[^(]*|(?!=)[^(:/\\%]*)\([^()=<>!]{1,200}(?:[=<>]|!=|\sin\s*\()/;

const MAX_CONDITIONS = 20;
const MAX_STEPS = 20;

/** An entry of a list without its `!`. Throws an Error that says what is wrong. */
export function parseEntry(text: string): ParsedEntry {
  const [, base, inner] = WITH_CONDITIONS.exec(text) ?? [];
  if (base === undefined || inner === undefined) {
    if (MISPLACED_CONDITIONS.test(text))
      throw new Error("conditions follow the name without a blank, and their last parenthesis ends the rule");
    return { base: text, conditions: [] };
  }
  return { base, conditions: new ConditionReader(inner).all() };
}

/** Reads `path operator value`, separated by commas. */
class ConditionReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  all(): ArgumentCondition[] {
    const conditions: ArgumentCondition[] = [];
    do conditions.push(this.#condition());
    while (this.#take(","));
    if (this.#at < this.#text.length) this.#fail("a comma is missing");
    if (conditions.length > MAX_CONDITIONS) this.#fail(`there are more than ${MAX_CONDITIONS} conditions`);
    return conditions;
  }

  #condition(): ArgumentCondition {
    this.#skipBlanks();
    const start = this.#at;
    const steps = this.#steps();
    const name = this.#text.slice(start, this.#at).trim();
    const operator = this.#operator(name);
    const values = operator === "in" ? this.#list() : [this.#value()];
    for (const { text } of values) this.#checkValue(operator, name, steps, text);
    return { name, steps, operator, values };
  }

  #checkValue(operator: string, name: string, steps: readonly ArgumentStep[], text: string): void {
    if (/^[<>]/.test(operator) && !isNumberText(text)) this.#fail(`${name}${operator} needs a number`);
    if (steps.length > 0) return;
    if (operator !== "=" || !/^sha256:[0-9a-f]{64}$/.test(text)) this.#fail("* takes = and a hash");
  }

  #steps(): ArgumentStep[] {
    if (this.#take("*")) return [];
    const steps: ArgumentStep[] = [{ key: this.#key() }];
    for (;;) {
      if (steps.length > MAX_STEPS) this.#fail(`a path has more than ${MAX_STEPS} steps`);
      if (this.#take("[*]")) steps.push("items");
      else if (this.#take(".")) steps.push({ key: this.#key() });
      else return steps;
    }
  }

  #key(): string {
    if (this.#text[this.#at] === '"') return this.#quoted();
    const key = this.#match(/[\p{L}\p{N}_$@:/-]+/uy);
    if (key === "") this.#fail("the name of an argument is missing");
    return key;
  }

  #operator(name: string): ArgumentCondition["operator"] {
    this.#skipBlanks();
    for (const operator of ["!=", "<=", ">=", "=", "<", ">"] as const) if (this.#take(operator)) return operator;
    if (this.#match(/in(?=[\s(])/y) !== "") return "in";
    return this.#fail(`${name} is not followed by =, !=, <, <=, >, >= or in`);
  }

  #list(): ArgumentValue[] {
    if (!this.#take("(")) this.#fail("in needs a list in parentheses");
    const values: ArgumentValue[] = [];
    do values.push(this.#value());
    while (this.#take(","));
    if (!this.#take(")")) this.#fail("the list after in is not closed");
    return values;
  }

  #value(): ArgumentValue {
    this.#skipBlanks();
    if (this.#text[this.#at] === '"') return { text: this.#quoted(), literal: true };
    const text = this.#match(/[^,()"]+/y).trim();
    if (text === "") this.#fail('a value is missing; an empty one is ""');
    if (/^[=<>!]/.test(text)) this.#fail("a value that begins with an operator needs quotes");
    return { text, literal: false };
  }

  /** As JSON writes a string. */
  #quoted(): string {
    const quoted = this.#match(/"(?:[^"\\]|\\.)*"/sy);
    try {
      return String(JSON.parse(quoted));
    } catch {
      return this.#fail("a text in quotes is not as JSON writes one");
    }
  }

  #match(sticky: RegExp): string {
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  #take(token: string): boolean {
    this.#skipBlanks();
    const isThere = this.#text.startsWith(token, this.#at);
    if (isThere) this.#at += token.length;
    return isThere;
  }

  #skipBlanks(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
  }

  #fail(why: string): never {
    throw new Error(`${why} (at character ${this.#at + 1} of the conditions)`);
  }
}

/** A finite number as JSON writes one. */
export function isNumberText(text: string): boolean {
  return /^-?\d{1,300}(?:\.\d{1,300})?(?:e[+-]?\d{1,3})?$/i.test(text) && Number.isFinite(Number(text));
}

/**
 * A glob on names, a class (`readOnly`, `writes`, `destructive`, `openWorld`), `tag:<name>`, or exactly one name after `=`
 * (`=tool:<name>`, `=resource:<uri>`, `=prompt:<name>`), each but those of resources and prompts with conditions on arguments in
 * parentheses; `!` in front takes out again.
 */
const Pattern = z
  .string()
  .min(1)
  .superRefine((text, context) => {
    try {
      parseEntry(text.startsWith("!") ? text.slice(1) : text);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      context.addIssue({ code: "custom", message: `a rule that can be read: ${why}` });
    }
  });
const Patterns = z.array(Pattern);

const DURATION_UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `30s`, `10m`, `1h` or `2d`. */
export function parsePeriod(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,4})([smhd])$/.exec(text) ?? [];
  return Number(count) * (DURATION_UNITS[unit] ?? Number.NaN);
}

/** Minutes since midnight of both ends of `22-06` or `08:30-17:00`. */
export function parseHours(text: string): readonly [number, number] | undefined {
  const [, fromHour = "", fromMinute = "0", toHour = "", toMinute = "0"] =
    /^(\d{1,2})(?::(\d{2}))?-(\d{1,2})(?::(\d{2}))?$/.exec(text) ?? [];
  const from = Number(fromHour) * 60 + Number(fromMinute);
  const to = Number(toHour) * 60 + Number(toMinute);
  const isTime = fromHour !== "" && Number(fromMinute) < 60 && Number(toMinute) < 60 && from < 1440 && to <= 1440;
  return isTime && from !== to ? [from, to] : undefined;
}

/** Above this, the times of calls that a rule counts would take too much room. */
const MAX_COUNTED = 10_000;

const WhenSchema = z
  .strictObject({
    tainted: z
      .boolean()
      .optional()
      .describe("Whether the session has read what anyone may have written; see `guard.taint`."),
    client: z
      .string()
      .min(1)
      .optional()
      .describe("A glob on the name that the client program gives itself; upper and lower case do not matter."),
    calls: z
      .strictObject({
        tool: z.string().min(1).optional().describe("A glob on public names; the called tool itself if absent."),
        per: z
          .string()
          .refine((text) => parsePeriod(text) > 0, "a period such as 30s, 10m, 1h or 1d")
          .describe("The time looked back on: `30s`, `10m`, `1h`, `1d`."),
        over: z
          .int()
          .min(0)
          .max(MAX_COUNTED)
          .describe("The rule applies to the calls after this many of the same caller."),
      })
      .optional()
      .describe("How often the caller has called before."),
    hours: z
      .string()
      .refine((text) => parseHours(text) !== undefined, 'hours such as "22-06" or "08:30-17:00"')
      .optional()
      .describe("Hours of the day in the hub's time zone, such as `22-06`; the end is not included."),
  })
  .refine((when) => Object.values(when).some((value) => value !== undefined), "at least one condition");

export type When = z.output<typeof WhenSchema>;

const ConditionalRuleSchema = z
  .strictObject({
    deny: Pattern.optional().describe("A pattern of what must not be used."),
    ask: Pattern.optional().describe("A pattern of what needs approval."),
    allow: Pattern.optional().describe("A pattern of what may be used, as an entry of `allow`."),
    when: WhenSchema.describe("All of these must hold."),
  })
  .refine(
    ({ deny, ask, allow }) => [deny, ask, allow].filter((pattern) => pattern !== undefined).length === 1,
    "exactly one of deny, ask and allow",
  );

export type ConditionalRule = z.output<typeof ConditionalRuleSchema>;

export const ToolRulesSchema = z.strictObject({
  allow: Patterns.optional().describe("Patterns of tools that may be used; all if absent."),
  deny: Patterns.optional().describe("Patterns of what must not be used; takes precedence over ask and allow."),
  ask: Patterns.optional().describe("Patterns of what needs approval by a person; takes precedence over allow."),
  rules: z
    .array(ConditionalRuleSchema)
    .optional()
    .describe("Rules with conditions: one of `deny`, `ask` and `allow` with a pattern, and `when`."),
});

export type ToolRules = z.output<typeof ToolRulesSchema>;

/** Rules of a session. Not part of the config. */
export interface SessionRules extends ToolRules {
  /**
   * Only what these sources offer, of any kind; `local` is the in-process tools. An id also stands for the server that
   * a role has in its place.
   */
  readonly servers?: readonly string[];
  /** Only what servers with at least one of these tags offer. In-process tools have no tags. */
  readonly tags?: readonly string[];
  /** Whether patterns of this set also match the names that servers give their tools. */
  readonly ownNames?: boolean;
  /** Patterns that `allow` does not apply to. They match public names only, so that no server can give itself such a name. */
  readonly exempt?: readonly string[];
  /** Additional sets of rules, each of which must also allow something. */
  readonly also?: readonly SessionRules[];
}
