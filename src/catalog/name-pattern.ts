import { LEAD, cleanCharacters, needsLead } from "./provider-name.ts";

const TOOL = "{tool}";
const SERVER = "{server}";

/** The naming template filled in for one server: a fixed beginning and end around the server's own names. */
export class NamePattern {
  readonly server: string;
  readonly #before: string;
  readonly #after: string;
  readonly #cleanBefore: string;
  readonly #cleanAfter: string;

  /** @param shownAs What stands for the server in names; its id if absent. */
  constructor(template: string, server: string, toolPrefix: string | undefined, shownAs: string = server) {
    this.server = server;
    const [before, after] = fill(template, shownAs, toolPrefix);
    this.#before = before;
    this.#after = after;
    this.#cleanBefore = cleanCharacters(before);
    this.#cleanAfter = cleanCharacters(after);
  }

  render(name: string): string {
    return this.#before + name + this.#after;
  }

  /** How much of a name the pattern fixes. */
  get specificity(): number {
    return this.#cleanBefore.length + this.#cleanAfter.length;
  }

  /** Whether some name that the server might give a tool leads to this public name. */
  couldGive(publicName: string): boolean {
    if (this.#fits(publicName)) return true;
    const unled = publicName.startsWith(LEAD) ? publicName.slice(LEAD.length) : "";
    return unled !== "" && needsLead(unled) && this.#fits(unled);
  }

  /** False only where no public name can come from both; spares the common case of unrelated prefixes all checks. */
  mayMeet(other: NamePattern): boolean {
    const [a, b] = [this.#cleanBefore, other.#cleanBefore];
    if (!oneBeginsOther(a, b) && !oneBeginsOther(LEAD + a, b) && !oneBeginsOther(a, LEAD + b)) return false;
    return this.#cleanAfter.endsWith(other.#cleanAfter) || other.#cleanAfter.endsWith(this.#cleanAfter);
  }

  equals(other: NamePattern): boolean {
    return this.#cleanBefore === other.#cleanBefore && this.#cleanAfter === other.#cleanAfter;
  }

  #fits(clean: string): boolean {
    return clean.length > this.specificity && clean.startsWith(this.#cleanBefore) && clean.endsWith(this.#cleanAfter);
  }
}

function oneBeginsOther(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

function fill(template: string, server: string, toolPrefix: string | undefined): [before: string, after: string] {
  const at = template.indexOf(TOOL);
  const before = at < 0 ? template : template.slice(0, at);
  const after = at < 0 ? "" : template.slice(at + TOOL.length);
  if (toolPrefix === undefined) return [before.replaceAll(SERVER, server), after.replaceAll(SERVER, server)];
  // "" promises the bare tool name, so the rest of the template goes too.
  if (toolPrefix === "") return ["", ""];
  // The separator is what stands between {server} and {tool}, on whichever side the server is.
  const serverBefore = before.indexOf(SERVER);
  if (serverBefore >= 0) return [before.slice(0, serverBefore) + toolPrefix, after];
  const serverAfter = after.indexOf(SERVER);
  if (serverAfter >= 0) return [before, toolPrefix + after.slice(serverAfter + SERVER.length)];
  return [before + toolPrefix, after];
}
