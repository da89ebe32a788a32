/** `toolcrib taint`: what sessions and memory-like servers of a running hub hold that anyone may have written, and clearing it. */
import type { OutputOf } from "../../contract/operations.ts";
import { API_PATH } from "../../contract/rest.ts";
import { showHidden } from "../../base/visible-text.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Invocation } from "../command.ts";
import { findRunningHub } from "../remote-hub.ts";
import type { Column } from "../table.ts";
import { requireToken } from "./approve.ts";

type Listed = OutputOf<"listTaint">;

interface Row {
  readonly kind: "session" | "memory";
  readonly id: string;
  readonly origins: Listed["memories"][number]["origins"];
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "KIND", cell: ({ kind }) => kind },
  { title: "ID", cell: ({ id }) => showHidden(id) },
  { title: "FROM", cell: ({ origins }) => showHidden(origins.map(({ name }) => name).join(", ")) },
  { title: "SINCE", cell: ({ origins }) => origins[0]?.at ?? "-" },
  { title: "READ", cell: ({ origins }) => showHidden(origins.flatMap(({ read }) => read).join(", ")), shrink: true },
];

export async function run(invocation: Invocation): Promise<number> {
  const { args, out } = invocation;
  const [action, what] = args;
  if (action !== undefined && (action !== "clear" || what === undefined)) {
    throw new ToolcribError("invalid_arguments", "Say what to clear: toolcrib taint clear <session or server>.", {
      hint: "toolcrib taint lists what there is.",
    });
  }
  // A model with a shell must not clear what it has read itself.
  const isPerson = invocation.stdin.isTTY && out.prompts.isTTY === true;
  if (!isPerson) requireToken(invocation, "Looking at taint", "admin");
  const hub = await findRunningHub(invocation, { withOwnToken: isPerson });
  // The contract says what the hub answers.
  const rows = rowsOf((await hub.request("GET", `${API_PATH}/taint`)) as unknown as Listed);
  if (what === undefined) {
    out.list(COLUMNS, rows, "No session and no memory holds anything that strangers may have written.");
    if (!out.json && rows.length > 0) out.note("When you have read it: toolcrib taint clear <id>.");
    return 0;
  }
  const { kind, id } = findRow(rows, what);
  await hub.request("POST", `${API_PATH}/taint/clear`, kind === "session" ? { sessionId: id } : { memory: id });
  if (out.json) out.value({ kind, id });
  else out.line(`Cleared: ${kind} ${showHidden(id)}`);
  return 0;
}

function rowsOf({ sessions, memories }: Listed): Row[] {
  return [
    ...sessions.map(({ id, taint }): Row => ({ kind: "session", id, origins: taint.origins })),
    ...memories.map(({ server, origins }): Row => ({ kind: "memory", id: server, origins })),
  ];
}

/** A shorter prefix could be a typo. */
const MIN_ID_PREFIX_LENGTH = 4;

function findRow(rows: readonly Row[], what: string): Row {
  const exact = rows.filter(({ id }) => id === what);
  const byPrefix = rows.filter(({ kind, id }) => kind === "session" && id.startsWith(what));
  const found = exact.length > 0 || what.length < MIN_ID_PREFIX_LENGTH ? exact : byPrefix;
  const [row, other] = found;
  if (row === undefined) {
    throw new ToolcribError("not_found", `Nothing from strangers is known of "${what}".`, {
      hint: "toolcrib taint lists what there is.",
    });
  }
  if (other === undefined) return row;
  throw new ToolcribError("invalid_arguments", `Several ids begin with "${what}".`, { hint: "Use more of the id." });
}
