/** What an operator changed goes into the audit log, with who did it: the call records alone do not show it. */
import type { CheckedInput, OperationName, OutputOf } from "../../../contract/operations.ts";
import type { Caller } from "../../../model/caller.ts";
import type { EventRecord } from "../../../telemetry/audit/record.ts";
import type { OperationContext } from "./operation.ts";
import type { Shown } from "./shown.ts";

type Change = Pick<EventRecord, "event" | "origin" | "name" | "details">;

type Recorded = {
  readonly [Name in OperationName]?: (input: CheckedInput<Name>, output: Shown<OutputOf<Name>>) => Change | undefined;
};

/** More would make a record of its own size; the count says how many there were. */
const MOST_NAMED = 50;

const server = (event: string, id: string | undefined, details?: EventRecord["details"]): Change => ({
  event,
  origin: { source: id ?? "", name: id ?? "" },
  details,
});

/** Pins and answers to approvals write records of their own. Values of entries are not recorded, only their keys. */
const RECORDED: Recorded = {
  addServer: ({ serverId, config }) =>
    server("server.added", serverId ?? config.id, { keys: Object.keys(config).filter((key) => key !== "id") }),
  updateServer: ({ serverId, updates }) => server("server.changed", serverId, { keys: Object.keys(updates) }),
  removeServer: ({ serverId }) => server("server.removed", serverId),
  connectServer: ({ serverId }) => server("server.connect", serverId),
  disconnectServer: ({ serverId }) => server("server.disconnect", serverId),
  testServer: ({ serverId, config }) => server("server.tested", serverId ?? config.id, { keys: Object.keys(config) }),
  importSkills({ path, force, dryRun }, { imported, unchanged, failed }) {
    if (dryRun) return undefined;
    const skills = imported.slice(0, MOST_NAMED).map(({ skillId }) => skillId);
    const counts = { imported: imported.length, unchanged: unchanged.length, failed: failed.length };
    return { event: "skill.imported", name: path, details: { force, skills, ...counts } };
  },
  removeSkill: ({ skillId }) => ({ event: "skill.removed", name: skillId }),
  openSession: (_input, { sessionId, servers }) => ({
    event: "session.begun",
    name: sessionId,
    details: { servers: servers.map(({ name }) => name) },
  }),
  closeSession: ({ sessionId }) => ({ event: "session.ended", name: sessionId }),
};

/** Without the colon: `token:` and what follows would be masked for a secret, which it is not. */
export function writtenKey({ key }: Caller): string {
  return key.replace(":", " ");
}

/** The record of an operation that succeeded; undefined for those that change nothing. */
export function recordOf<Name extends OperationName>(
  name: Name,
  input: CheckedInput<Name>,
  output: Shown<OutputOf<Name>>,
  { caller, session }: OperationContext,
): Omit<EventRecord, "time"> | undefined {
  const change = RECORDED[name]?.(input, output);
  if (change === undefined) return undefined;
  // Not everybody has a name, but every token and every login by a link a key of its own.
  const details = { ...change.details, by: writtenKey(caller) };
  return { ...change, details, door: session.door, session: session.id, user: caller.user ?? null };
}
