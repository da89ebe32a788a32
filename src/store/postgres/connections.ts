/**
 * The connections of one store. A server that is stopped, or behind a network that drops everything, never says so: nothing
 * here waits for it without end.
 */
import { Socket } from "node:net";
import type { PostgresPool, PostgresPoolClient } from "kysely";
import type pg from "pg";

const CONNECTIONS = 5;
const CONNECT_MS = 10_000;
const ANSWER_MS = 15_000;
const KEEP_ALIVE_MS = 10_000;

export interface Connections {
  readonly pool: PostgresPool;
  /** One that is not of the pool, and keeps no process alive. */
  connectAlone(): Promise<pg.Client>;
  /** Cuts off everything that is under way; what comes after it fails at once. */
  giveUp(): void;
}

export function openConnections(
  { Pool, Client }: typeof pg,
  own: pg.ClientConfig,
  answerMs: number = ANSWER_MS,
): Connections {
  const sockets = new Set<Socket>();
  let gaveUp = false;
  const settings: pg.ClientConfig = {
    ...own,
    connectionTimeoutMillis: CONNECT_MS,
    // Of statements: a connection that only listens may stay silent as long as it likes.
    query_timeout: answerMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    stream() {
      const socket = new Socket();
      sockets.add(socket);
      return socket.once("close", () => sockets.delete(socket));
    },
  };
  // A program that forgets to close its hub still ends.
  const pool = new Pool({ ...settings, max: CONNECTIONS, allowExitOnIdle: true });
  // An idle connection that breaks is replaced when the next one is asked for.
  pool.on("error", () => {});
  // One in use fails with its next statement; without a listener its error would end the process before.
  pool.on("connect", (client) => client.on("error", () => {}));
  const assertOpen = (): void => {
    if (gaveUp) throw new Error("Connection terminated, because it did not answer in time");
  };
  return {
    pool: {
      options: pool.options,
      async connect() {
        assertOpen();
        return answering(await pool.connect());
      },
      end: () => pool.end(),
    },
    async connectAlone() {
      assertOpen();
      const client = new Client(settings);
      // Before it connects: a failure without a listener would end the process.
      client.on("error", () => {});
      await client.connect();
      // The package has it, its types lack it.
      (client as pg.Client & { unref(): void }).unref();
      return client;
    },
    giveUp() {
      gaveUp = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** After a statement that got no answer in time, the next would wait behind it: the connection is of no more use. */
function answering(client: pg.PoolClient): PostgresPoolClient {
  let isStuck = false;
  const query = async (text: string, values: unknown[]): Promise<unknown> => {
    if (isStuck) throw new Error("Connection terminated after a timeout");
    try {
      return await client.query(text, values);
    } catch (error) {
      isStuck = error instanceof Error && error.message === "Query read timeout";
      throw error;
    }
  };
  return {
    // Kysely calls it with a text and its values; the other form, for cursors, is not used here.
    query: query as PostgresPoolClient["query"],
    release: (destroy) => client.release(isStuck || destroy === true),
  };
}
