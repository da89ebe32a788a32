/** A Connection on a fake clock with fake or real wires, and everything it needs around it. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import type { Clock } from "../../src/base/clock.ts";
import { type ServerEntryInput, ServerEntrySchema, type ServerSpec } from "../../src/model/server-spec.ts";
import type { Root } from "../../src/model/protocol.ts";
import type {
  ClientSide,
  ElicitationCallback,
  SamplingCallback,
  SessionContext,
  UseContext,
} from "../../src/model/source.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import type { ConnectionDeps } from "../../src/upstream/connection-deps.ts";
import { Connection } from "../../src/upstream/connection.ts";
import { InMemoryEras } from "../../src/upstream/era-memory.ts";
import { PidRecords } from "../../src/upstream/stdio/pid-records.ts";
import { FakeClock } from "./fake-clock.ts";

export function specOf(entry: ServerEntryInput, id = "fake"): ServerSpec {
  return {
    ...ServerEntrySchema.parse(entry),
    id,
    origin: { file: "test", dialect: "toolcrib" },
    baseDir: process.cwd(),
  };
}

export interface Answers {
  readonly roots?: readonly Root[];
  readonly onSample?: SamplingCallback;
  readonly onElicit?: ElicitationCallback;
}

/** A client that can answer exactly this. */
export function clientOf(key: string, { roots, onSample, onElicit }: Answers = {}): ClientSide {
  return {
    key,
    capabilities: {
      ...(roots && { roots: { listChanged: true } }),
      ...(onSample && { sampling: {} }),
      ...(onElicit && { elicitation: { form: {} } }),
    },
    ...(roots && { listRoots: async () => ({ roots: [...roots] }) }),
    ...(onSample && { sample: onSample }),
    ...(onElicit && { elicit: onElicit }),
  };
}

export function sessionOf(id: string, more: Partial<SessionContext> & Answers = {}): SessionContext {
  const { roots, onSample, onElicit, ...rest } = more;
  const answers = { ...(roots && { roots }), ...(onSample && { onSample }), ...(onElicit && { onElicit }) };
  return { id, door: "test", owner: true, client: clientOf(id, answers), ...rest };
}

export function contextOf(more: Partial<UseContext> = {}): UseContext {
  const session = more.session ?? sessionOf("s1");
  return { callId: "call", session, client: session.client, signal: new AbortController().signal, ...more };
}

export interface Bench {
  readonly clock: FakeClock;
  readonly connection: Connection;
  readonly states: string[];
  readonly warnings: string[];
}

export function depsOf(clock: Clock, more: Partial<ConnectionDeps> = {}): ConnectionDeps {
  return {
    clock,
    env: process.env,
    eras: new InMemoryEras(),
    pids: new PidRecords(join(tmpdir(), `toolcrib-test-run-${randomUUID()}`)),
    redactor: new Redactor(),
    hubSession: sessionOf("hub"),
    offers: {},
    clientVersion: "0.0.0-test",
    ...more,
  };
}

export function bench(entry: ServerEntryInput, more: Partial<ConnectionDeps> = {}): Bench {
  const clock = new FakeClock();
  const connection = new Connection(specOf(entry), depsOf(clock, more));
  const states: string[] = [connection.state.kind];
  const warnings: string[] = [];
  connection.on("state", ({ state }) => states.push(state.kind));
  connection.on("warning", (text) => warnings.push(text));
  return { clock, connection, states, warnings };
}
