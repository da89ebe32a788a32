/** Which tools bring in content from anywhere, can destroy, or can send data out. */
import type { Matchable } from "./pattern.ts";
import { compilePattern } from "./pattern.ts";
import { PatternList } from "./pattern-list.ts";

export interface ClassRules {
  readonly openWorld?: readonly string[] | undefined;
  readonly destructive?: readonly string[] | undefined;
  readonly sendsOut?: readonly string[] | undefined;
}

export type ToolClass = "openWorld" | "destructive" | "sendsOut";

const CLAIMED = {
  openWorld: compilePattern("openWorld"),
  destructive: compilePattern("destructive"),
  // A tool of the open world can carry data out in what it asks for, even when it only reads.
  sendsOut: compilePattern("openWorld"),
} as const;

/** What a tool claims of itself, corrected by the config: listed patterns add, exceptions take out. */
export class ToolClasses {
  readonly #lists: Readonly<Record<ToolClass, PatternList>>;

  constructor({ openWorld = [], destructive = [], sendsOut = [] }: ClassRules) {
    this.#lists = {
      openWorld: new PatternList(openWorld),
      destructive: new PatternList(destructive),
      sendsOut: new PatternList(sendsOut),
    };
  }

  has(subject: Matchable, name: ToolClass): boolean {
    const list = this.#lists[name];
    if (list.match(subject) !== undefined) return true;
    // What a resource or a prompt brings in was written by anybody, too.
    const claimed =
      subject.kind === undefined || subject.kind === "tool" ? CLAIMED[name].names(subject) : name === "openWorld";
    return claimed && !list.excepts(subject);
  }
}
