/**
 * Tells whether a URI can come from an RFC 6570 template, to find the server that can read it. Values are not
 * extracted. Templates come from servers and URIs from clients, so there is no regular expression to blow up:
 * the cost is the length of the URI times the number of parts.
 */
const MAX_URI_LENGTH = 8192;
const MAX_PARTS = 32;

/** Either fixed text, or an expression: what it begins with, whether it may be absent, what its characters may not be. */
type Part = { readonly literal: string } | { readonly lead: string; readonly optional: boolean; readonly stop: string };

export class UriTemplate {
  /** How much of a URI the template fixes: of two templates that fit, the one that fixes more is meant. */
  readonly literalLength: number;
  readonly #parts: readonly Part[];

  private constructor(parts: readonly Part[]) {
    this.#parts = parts;
    this.literalLength = parts.reduce((sum, part) => sum + ("literal" in part ? part.literal.length : 0), 0);
  }

  /** Undefined for a text that is not a template: braces that do not pair, an empty expression, an unknown operator. */
  static parse(text: string): UriTemplate | undefined {
    const parts: Part[] = [];
    let position = 0;
    while (position < text.length) {
      const open = text.indexOf("{", position);
      const literal = text.slice(position, open < 0 ? text.length : open);
      if (literal.includes("}")) return undefined;
      if (literal !== "") parts.push({ literal });
      if (open < 0) break;
      const close = text.indexOf("}", open);
      const part = close < 0 ? undefined : parseExpression(text.slice(open + 1, close));
      if (part === undefined || parts.length >= MAX_PARTS) return undefined;
      parts.push(part);
      position = close + 1;
    }
    return new UriTemplate(parts);
  }

  /** How many steps `matches` takes. */
  cost(uri: string): number {
    return this.#canMatch(uri) ? uri.length * this.#parts.length : 0;
  }

  matches(uri: string): boolean {
    if (!this.#canMatch(uri)) return false;
    // reached[i]: the parts so far can account for exactly the first i characters.
    let reached = new Uint8Array(uri.length + 1);
    reached[0] = 1;
    for (const part of this.#parts) reached = advance(part, uri, reached);
    return reached[uri.length] === 1;
  }

  #canMatch(uri: string): boolean {
    const first = this.#parts[0];
    const begins = first === undefined || !("literal" in first) || uri.startsWith(first.literal);
    return begins && uri.length <= MAX_URI_LENGTH;
  }
}

/**
 * The beginning of a URI that is known once these variables are: up to the first expression that lacks one. `?` and `#` of a
 * value are encoded, as they are part of it.
 */
export function expandKnownPart(template: string, values: Readonly<Record<string, unknown>>): string {
  let uri = "";
  let position = 0;
  for (const { 0: expression, 1: operator = "", 2: names = "", index } of template.matchAll(EXPRESSION)) {
    uri += template.slice(position, index);
    position = index + expression.length;
    const lead = operator === "+" ? "" : operator;
    for (const [nth, name] of names.split(",").entries()) {
      const key = name.replace(/(?::\d{1,4}|\*)$/, "");
      const value = Object.hasOwn(values, key) ? values[key] : undefined;
      if (typeof value !== "string") return uri;
      const named = /^[;?&]$/.test(operator) ? `${key}=` : "";
      const separator = nth === 0 ? lead : (SEPARATORS[operator] ?? ",");
      uri += `${separator}${named}${value.replaceAll("?", "%3F").replaceAll("#", "%23")}`;
    }
  }
  return uri + template.slice(position);
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;
const SEPARATORS: Readonly<Record<string, string>> = { ".": ".", "/": "/", ";": ";", "?": "&", "&": "&" };

interface Variable {
  readonly name: string;
  readonly explode: boolean;
  readonly length: number;
}

function variablesIn(names: string): Variable[] {
  return names.split(",").map((text) => {
    const explode = text.endsWith("*");
    const [name = "", length] = (explode ? text.slice(0, -1) : text).split(":");
    return { name, explode, length: length === undefined ? Infinity : Number(length) };
  });
}

/** The names of its variables, each once, and whether a URI needs it. */
export function templateVariables(template: string): { readonly name: string; readonly required: boolean }[] {
  const found = new Map<string, boolean>();
  for (const { 1: operator = "", 2: names = "" } of template.matchAll(EXPRESSION)) {
    const isNeeded = operator === "" || operator === "+";
    for (const { name } of variablesIn(names)) found.set(name, isNeeded || found.get(name) === true);
  }
  return [...found].map(([name, required]) => ({ name, required }));
}

/** The URI of a template with these values (RFC 6570); a variable without a value is left out. */
export function expandTemplate(template: string, values: Readonly<Record<string, string | readonly string[]>>): string {
  return template.replace(EXPRESSION, (_, operator: string, names: string) => {
    const isNamed = /^[;?&]$/.test(operator);
    const encode = operator === "+" || operator === "#" ? encodeReserved : encodeValue;
    const parts = variablesIn(names).flatMap(({ name, explode, length }) => {
      const given = Object.hasOwn(values, name) ? values[name] : undefined;
      const list = given === undefined ? [] : typeof given === "string" ? [given.slice(0, length)] : given;
      if (list.length === 0) return [];
      const texts = list.map(encode);
      const withName = (text: string): string =>
        !isNamed ? text : text === "" && operator === ";" ? name : `${name}=${text}`;
      return explode ? texts.map(withName) : [withName(texts.join(","))];
    });
    if (parts.length === 0) return "";
    return (operator === "+" ? "" : operator) + parts.join(SEPARATORS[operator] ?? ",");
  });
}

function encodeValue(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Reserved characters, and what is encoded already, stay as they are. */
function encodeReserved(text: string): string {
  return text
    .toWellFormed()
    .replace(/%(?![0-9a-f]{2})|[^\w.~!#$&'()*+,/:;=?@[\]%-]+/gi, (each) => encodeURIComponent(each));
}

function advance(part: Part, uri: string, before: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const after = new Uint8Array(uri.length + 1);
  const fixed = "literal" in part ? part.literal : part.lead;
  for (let i = 0; i <= uri.length; i += 1) {
    if (before[i] === 1 && uri.startsWith(fixed, i)) after[i + fixed.length] = 1;
  }
  if ("literal" in part) return after;
  // Each character that the expression may hold carries a reached place one further.
  const inside = new Uint8Array(uri.length + 1);
  for (let i = 0; i < uri.length; i += 1) {
    if ((after[i] === 1 || inside[i] === 1) && !part.stop.includes(uri.charAt(i))) inside[i + 1] = 1;
  }
  for (let i = 0; i <= uri.length; i += 1) {
    // An expression with a lead may have an empty value; one without needs at least one character.
    if (part.lead !== "" && after[i] === 1) inside[i] = 1;
    if (part.optional && before[i] === 1) inside[i] = 1;
  }
  return inside;
}

function parseExpression(text: string): Part | undefined {
  const operator = /^[+#./;?&]/.exec(text)?.[0] ?? "";
  const names = text.slice(operator.length);
  if (!/^[A-Za-z0-9_.%]+(?::\d{1,4}|\*)?(?:,[A-Za-z0-9_.%]+(?::\d{1,4}|\*)?)*$/.test(names)) return undefined;
  switch (operator) {
    case "":
      return { lead: "", optional: false, stop: "/?#" };
    case "+":
      return { lead: "", optional: false, stop: "" };
    case "#":
      return { lead: "#", optional: true, stop: "" };
    case "/":
      return { lead: "/", optional: true, stop: /[,*]/.test(names) ? "?#" : "/?#" };
    case "?":
    case "&":
      return { lead: operator, optional: true, stop: "#" };
    default:
      return { lead: operator, optional: true, stop: "/?#" };
  }
}
