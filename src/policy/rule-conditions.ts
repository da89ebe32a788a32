/** Conditions of a rule on the arguments and on the circumstances of one call. */
import { hash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type ArgumentCondition,
  type ArgumentStep,
  type ArgumentValue,
  isNumberText,
  parseHours,
  parsePeriod,
  type When,
} from "../model/tool-rules.ts";
import {
  compileValue,
  type FilePlace,
  foldKey,
  IN_DOUBT,
  type LinkPaths,
  type Match,
  NO,
  ArgumentReader,
  type ValueHint,
  type ValuePattern,
  YES,
} from "./argument-values.ts";
import { compileGlob, type Glob } from "./glob.ts";

/** The facts of one call that rules with conditions look at. */
export interface CallFacts {
  /** As the server receives them; undefined for what has none, such as a resource. */
  readonly arguments: Readonly<JsonObject> | undefined;
  /** The input schema, whose defaults count as given. */
  readonly schema: Readonly<JsonObject> | undefined;
  readonly reader: ArgumentReader;
  readonly tainted: boolean;
  /** The name that the client program gives itself. */
  readonly client: string | undefined;
  /** Public name of what is called. */
  readonly name: string;
  readonly now: number;
  /** How many calls of the same caller were let through in the time before now. */
  readonly countCalls: (condition: CountedCalls) => number;
}

/** Identifies what is counted: two rules that say the same share it. */
export interface CountedCalls {
  /** A glob on public names; the called tool if absent. */
  readonly tool: string | undefined;
  readonly periodMs: number;
  readonly over: number;
}

export interface Conditions {
  /** Names of the arguments that are looked at. */
  readonly arguments: readonly string[];
  readonly counted: CountedCalls | undefined;
  /** All of them, as they are written. */
  readonly texts: readonly string[];
  test(facts: CallFacts): Match;
  /** Those that do not hold beyond doubt (or, if `surely` is false, those that cannot hold), as they are written. */
  failing(facts: CallFacts, surely: boolean): string[];
  /** Adds the paths whose links have to be known. */
  addPaths(args: Readonly<JsonObject>, schema: Readonly<JsonObject> | undefined, paths: LinkPaths): void;
  screen(place: FilePlace): Screen | undefined;
}

/**
 * Without a fitting value of this argument, conditions do not hold; a value that is absent, empty or no text may fit. Or they
 * hold for the call with this hash only.
 */
export type Screen =
  | { readonly key: string; readonly hints: readonly ValueHint[] }
  | { readonly callHash: string | undefined };

interface Condition {
  readonly text: string;
  test(facts: CallFacts): Match;
}

/** Undefined for a rule without any. */
export function compileConditions(
  conditions: readonly ArgumentCondition[],
  when: When | undefined,
): Conditions | undefined {
  if (conditions.length === 0 && when === undefined) return undefined;
  const ofArguments = conditions.map((condition) => new ArgumentTest(condition));
  const all: readonly Condition[] = [...ofArguments, ...(when === undefined ? [] : circumstances(when))];
  return {
    arguments: [...new Set(conditions.map(({ name }) => name))],
    texts: all.map(({ text }) => text),
    counted: when?.calls && countedCalls(when.calls),
    test(facts) {
      let sure = true;
      for (const condition of all) {
        const match = condition.test(facts);
        if (match === NO) return NO;
        sure &&= match === YES;
      }
      return sure ? YES : IN_DOUBT;
    },
    failing: (facts, surely) =>
      all.flatMap((condition) => {
        const { possible, sure } = condition.test(facts);
        return (surely ? sure : possible) ? [] : [condition.text];
      }),
    addPaths(args, schema, paths) {
      for (const test of ofArguments) test.addPaths(args, schema, paths);
    },
    screen(place) {
      for (const test of ofArguments) {
        const screen = test.screen(place);
        if (screen !== undefined) return screen;
      }
      return undefined;
    },
  };
}

function countedCalls({ tool, per, over }: NonNullable<When["calls"]>): CountedCalls {
  return { tool, periodMs: parsePeriod(per), over };
}

function* circumstances({ tainted, client, calls, hours }: When): Generator<Condition> {
  if (tainted !== undefined) {
    yield { text: `tainted: ${tainted}`, test: (facts) => (facts.tainted === tainted ? YES : NO) };
  }
  if (client !== undefined) {
    const glob = compileGlob(client.toLowerCase());
    const test = ({ client: name }: CallFacts): Match =>
      name === undefined ? IN_DOUBT : glob(name.toLowerCase()) ? YES : NO;
    yield { text: `client: ${client}`, test };
  }
  if (calls !== undefined) {
    const counted = countedCalls(calls);
    const text = `calls: over ${calls.over} per ${calls.per}`;
    yield { text, test: (facts) => (facts.countCalls(counted) >= calls.over ? YES : NO) };
  }
  const span = hours === undefined ? undefined : parseHours(hours);
  if (span !== undefined) {
    const [from, to] = span;
    const test = ({ now }: CallFacts): Match => {
      const time = new Date(now);
      const minute = time.getHours() * 60 + time.getMinutes();
      return (from < to ? minute >= from && minute < to : minute >= from || minute < to) ? YES : NO;
    };
    yield { text: `hours: ${hours}`, test };
  }
}

/** More items than this are in doubt. */
const MAX_ITEMS = 1000;
/** Arguments that are nested deeper have no hash. */
const MAX_DEPTH = 100;

class ArgumentTest implements Condition {
  readonly text: string;
  readonly #condition: ArgumentCondition;
  readonly #test: ValueTest;
  readonly #folded: readonly string[];

  constructor(condition: ArgumentCondition) {
    this.#condition = condition;
    this.#folded = condition.steps.map((step) => (step === "items" ? "" : foldKey(step.key)));
    this.text = renderCondition(condition);
    this.#test = valueTest(condition);
  }

  test({ arguments: args, schema, reader }: CallFacts): Match {
    if (args === undefined) return NO;
    const { steps, values } = this.#condition;
    if (steps.length === 0) return reader.hashOf(args, callHash) === values[0]?.text ? YES : NO;
    const [first] = steps;
    if (steps.length === 1 && first !== "items" && first !== undefined && Object.hasOwn(args, first.key)) {
      // Most rules look at an argument that is there; nothing else has to be worked out for them.
      const value = args[first.key];
      const isAlone = reader.twins(args, first.key, this.#folded[0] ?? "").length === 0;
      if (value !== undefined && isAlone) return this.#match(value, reader);
    }
    const found = valuesAt(args, schema, steps, { reader, folded: this.#folded });
    if (found === undefined) return IN_DOUBT;
    let possible = false;
    let sure = !found.isPartial;
    for (const value of found.values) {
      const match = this.#match(value, reader);
      possible ||= match.possible;
      sure &&= match.sure;
    }
    return possible ? (sure ? YES : IN_DOUBT) : NO;
  }

  addPaths(args: Readonly<JsonObject>, schema: Readonly<JsonObject> | undefined, paths: LinkPaths): void {
    const { steps } = this.#condition;
    const found = steps.length === 0 ? undefined : valuesAt(args, schema, steps);
    for (const value of found?.values ?? []) if (typeof value === "string") this.#test.addPaths(value, paths);
  }

  screen(place: FilePlace): Screen | undefined {
    const { steps, values } = this.#condition;
    const [first, ...deeper] = steps;
    if (first === undefined) return { callHash: values[0]?.text };
    if (first === "items" || deeper.length > 0) return undefined;
    const hints = this.#test.hints(place);
    return hints && { key: first.key, hints };
  }

  #match(value: unknown, reader: ArgumentReader): Match {
    return isEmpty(value) ? this.#emptyMatch(value, reader) : this.#test.match(value, reader);
  }

  /** Many servers take an empty text, like one that is absent, for their own default. */
  #emptyMatch(value: unknown, reader: ArgumentReader): Match {
    const isNamed = value === "" && this.#condition.values.some(({ text, literal }) => literal && text === "");
    return isNamed ? this.#test.match(value, reader) : IN_DOUBT;
  }
}

/** The condition that holds for exactly these arguments; undefined if they are nested too deeply. */
export function callHash(args: Readonly<JsonObject>): string | undefined {
  return isTooDeep(args, MAX_DEPTH) ? undefined : `sha256:${hash("sha256", canonicalJson(args))}`;
}

function isTooDeep(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((item) => isTooDeep(item, depth - 1));
}

function isEmpty(value: unknown): boolean {
  return value === "" || value === null || value === undefined;
}

function renderCondition({ name, operator, values }: ArgumentCondition): string {
  const texts = values.map(({ text, literal }) => (literal ? JSON.stringify(text) : text));
  return operator === "in" ? `${name} in (${texts.join(", ")})` : `${name}${operator}${texts.join("")}`;
}

interface FoundValues {
  readonly values: readonly unknown[];
  /** Somewhere there is none, and the schema knows none. */
  readonly isPartial: boolean;
}

/**
 * The values at a path. Undefined if they cannot be told: absent where the schema may know the argument and no default, of another
 * type than the path says, empty lists, too many, or beside another that the schema does not know and a server may take for it.
 */
function valuesAt(
  root: unknown,
  rootSchema: Readonly<JsonObject> | undefined,
  steps: readonly ArgumentStep[],
  keys?: { readonly reader: ArgumentReader; readonly folded: readonly string[] },
): FoundValues | undefined {
  let isPartial = false;
  let places: { readonly value: unknown; readonly schema: unknown }[] = [{ value: root, schema: rootSchema }];
  for (const [index, step] of steps.entries()) {
    const next: typeof places = [];
    for (const { value, schema } of places) {
      if (step === "items") {
        if (!Array.isArray(value) || value.length === 0) return undefined;
        const items = isJsonObject(schema) ? schema["items"] : undefined;
        for (const item of value) next.push({ value: item, schema: items });
      } else {
        if (!isJsonObject(value)) return undefined;
        const twins = keys?.reader.twins(value, step.key, keys.folded[index] ?? "") ?? [];
        if (twins.some((twin) => !isDeclared(schema, twin))) return undefined;
        const declared = declaredAt(schema, step.key);
        if (Object.hasOwn(value, step.key) && value[step.key] !== undefined) {
          next.push({ value: value[step.key], schema: declared });
        } else if (declared === UNDECLARED) isPartial = true;
        else if (isJsonObject(declared) && Object.hasOwn(declared, "default")) {
          next.push({ value: declared["default"], schema: declared });
        } else return undefined;
      }
    }
    if (next.length > MAX_ITEMS) return undefined;
    places = next;
  }
  return { values: places.map(({ value }) => value), isPartial };
}

const UNDECLARED = Symbol("undeclared");

function isDeclared(schema: unknown, key: string): boolean {
  const properties = isJsonObject(schema) ? schema["properties"] : undefined;
  return isJsonObject(properties) && Object.hasOwn(properties, key);
}

/** Keywords that may add properties or defaults from elsewhere. */
const COMPOSED = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"];

/** The schema of a property. Undefined if it cannot be told whether there is one. */
function declaredAt(schema: unknown, key: string): unknown {
  if (!isJsonObject(schema)) return undefined;
  const { properties } = schema;
  if (isJsonObject(properties) && Object.hasOwn(properties, key)) return properties[key];
  const isWhole = schema["type"] === "object" && !COMPOSED.some((keyword) => Object.hasOwn(schema, keyword));
  return isWhole ? UNDECLARED : undefined;
}

interface ValueTest {
  match(value: unknown, reader: ArgumentReader): Match;
  addPaths(text: string, paths: LinkPaths): void;
  /** As of a ValuePattern. */
  hints(place: FilePlace): readonly ValueHint[] | undefined;
}

function valueTest({ name, operator, values }: ArgumentCondition): ValueTest {
  const [first = { text: "", literal: true }] = values;
  switch (operator) {
    case "<":
    case "<=":
    case ">":
    case ">=": {
      const bound = Number(first.text);
      const compare = COMPARISONS[operator];
      const match = (value: unknown): Match =>
        typeof value === "number" && Number.isFinite(value) ? (compare(value, bound) ? YES : NO) : IN_DOUBT;
      return { match, addPaths: () => {}, hints: () => undefined };
    }
    case "=":
    case "!=":
    case "in": {
      const tests = values.map((value) => new EqualityTest(value, name));
      const match = (value: unknown, reader: ArgumentReader): Match => {
        let possible = false;
        for (const test of tests) {
          const each = test.match(value, reader);
          if (each.sure) return operator === "!=" ? NO : YES;
          possible ||= each.possible;
        }
        if (possible) return IN_DOUBT;
        return operator === "!=" ? YES : NO;
      };
      const hints = (place: FilePlace): readonly ValueHint[] | undefined => {
        const all = operator === "!=" ? [undefined] : tests.map((test) => test.hints(place));
        const known = all.filter((each) => each !== undefined);
        return known.length === all.length ? known.flat() : undefined;
      };
      const addPaths = (text: string, paths: LinkPaths): void => {
        for (const test of tests) test.addPaths(text, paths);
      };
      return { match, addPaths, hints };
    }
  }
}

const COMPARISONS = {
  "<": (value: number, bound: number) => value < bound,
  "<=": (value: number, bound: number) => value <= bound,
  ">": (value: number, bound: number) => value > bound,
  ">=": (value: number, bound: number) => value >= bound,
} as const;

/** A value of a type that servers convert, such as "5" for 5 and "false" for false, is in doubt. */
class EqualityTest {
  readonly #value: ArgumentValue;
  readonly #pattern: ValuePattern;
  readonly #glob: Glob;
  readonly #number: number | undefined;
  readonly #boolean: boolean | undefined;

  constructor(value: ArgumentValue, name: string) {
    this.#value = value;
    const { text, literal } = value;
    this.#pattern = compileValue(text, { literal, name });
    this.#glob = literal ? (given) => given === text : compileGlob(text);
    this.#number = isNumberText(text) ? Number(text) : undefined;
    this.#boolean = !literal && /^(?:true|false)$/i.test(text) ? text.toLowerCase() === "true" : undefined;
  }

  match(value: unknown, reader: ArgumentReader): Match {
    switch (typeof value) {
      case "string":
        return this.#matchText(value, reader);
      case "number":
        if (!Number.isFinite(value)) return IN_DOUBT;
        if (this.#number !== undefined) return value === this.#number ? YES : NO;
        // A boolean as a number, which servers convert, or a glob on its digits.
        return this.#boolean === undefined && !this.#value.literal && this.#glob(String(value)) ? YES : IN_DOUBT;
      case "boolean":
        if (this.#boolean !== undefined) return value === this.#boolean ? YES : NO;
        return !this.#value.literal && this.#glob(String(value)) ? YES : IN_DOUBT;
      default:
        return IN_DOUBT;
    }
  }

  #matchText(text: string, reader: ArgumentReader): Match {
    if (this.#boolean !== undefined) return IN_DOUBT;
    if (this.#number !== undefined && text.trim() !== "" && Number(text) === this.#number) {
      return text === this.#value.text ? YES : IN_DOUBT;
    }
    return this.#pattern.match(text, reader);
  }

  addPaths(text: string, paths: LinkPaths): void {
    this.#pattern.addPaths(text, paths);
  }

  /** None for what also fits texts that servers convert. */
  hints(place: FilePlace): readonly ValueHint[] | undefined {
    return this.#number === undefined && this.#boolean === undefined ? this.#pattern.hints(place) : undefined;
  }
}

/** Callers whose counts are kept; above it the one that called least recently is forgotten. */
const MAX_CALLERS = 10_000;

/** Times of calls that were let through, for rules that count them. In memory: a restart begins with none. */
export class CallCounts {
  readonly #clock: Clock;
  /** By what is counted and for whom; the newest last. */
  readonly #times = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  count(caller: string, { tool, periodMs, over }: CountedCalls, name: string): number {
    const times = this.#times.get(countKey(caller, tool ?? name, periodMs, over)) ?? [];
    const since = this.#clock.now() - periodMs;
    return times.reduce((count, time) => (time > since ? count + 1 : count), 0);
  }

  /** A call that goes on to its server. */
  add(caller: string, counted: Iterable<CountedCalls>, name: string): void {
    for (const { tool, periodMs, over } of counted) {
      if (tool !== undefined && !compileGlob(tool)(name)) continue;
      const key = countKey(caller, tool ?? name, periodMs, over);
      const times = this.#times.get(key) ?? [];
      times.push(this.#clock.now());
      // No rule asks for more than that there are so many.
      if (times.length > over + 1) times.splice(0, times.length - over - 1);
      this.#times.delete(key);
      this.#times.set(key, times);
      const [oldest] = this.#times.size > MAX_CALLERS ? this.#times.keys() : [];
      if (oldest !== undefined) this.#times.delete(oldest);
    }
  }
}

function countKey(caller: string, tool: string, periodMs: number, over: number): string {
  return JSON.stringify([caller, tool, periodMs, over]);
}
