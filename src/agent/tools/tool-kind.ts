import type { ToolAnnotations } from "../../model/protocol.ts";
import type { ToolKind } from "../events.ts";
import { wordsOf } from "./tool-words.ts";

const BY_WORD: ReadonlyMap<string, ToolKind> = new Map(
  Object.entries({
    read: "read list get show view describe load open cat stat info",
    search: "search find query grep lookup glob",
    edit: "write edit create update set add append insert put patch replace save modify make mkdir upload",
    delete: "delete remove drop destroy unlink rm purge clear erase",
    move: "move rename mv",
    execute: "run exec execute shell bash command eval start spawn",
    fetch: "fetch http download crawl browse navigate url web",
    think: "think plan reason",
  } satisfies Partial<Record<ToolKind, string>>).flatMap(([kind, words]) =>
    // The keys are kinds: `satisfies` checks them, and `Object.entries` forgets it.
    words.split(" ").map((word) => [word, kind as ToolKind] as const),
  ),
);

const CHANGING: ReadonlySet<ToolKind> = new Set(["edit", "delete", "move", "execute"]);

/** By the first word of the name that says it. What a tool says of itself wins over its name: a read-only one changes nothing. */
export function kindOf(name: string, annotations: ToolAnnotations | undefined): ToolKind {
  const isReadOnly = annotations?.readOnlyHint === true;
  for (const word of wordsOf(name)) {
    const kind = BY_WORD.get(word);
    if (kind === undefined || (isReadOnly && CHANGING.has(kind))) continue;
    if (kind === "fetch" && annotations?.openWorldHint === false) return "read";
    return kind;
  }
  return isReadOnly ? "read" : "other";
}
