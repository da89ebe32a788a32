/** Around a dialect's own driver: text goes in and out exactly, and failures become errors of the error table. */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  type TransactionSettings,
} from "kysely";
import { InFlight } from "../base/async.ts";

interface ExactDriverOptions {
  /** Any failure of the database as the error that callers get. */
  readonly translate: (error: unknown) => Error;
  /** Runs a step that begins something new; may run it again. */
  readonly attempt: <Result>(step: () => Promise<Result>) => Promise<Result>;
  /** Before a connection is used. */
  readonly pause?: () => Promise<void>;
  /** Whether there is anything to roll back; if absent, there is. */
  readonly isInTransaction?: () => boolean;
  /** Instead of what the dialect begins a transaction with. */
  readonly begin?: string;
}

/** The dialect with such a driver. */
export function exactDialect(dialect: Dialect, options: ExactDriverOptions): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => new ExactDriver(dialect.createDriver(), options),
  };
}

class ExactDriver implements Driver {
  readonly #inner: Driver;
  readonly #options: ExactDriverOptions;
  readonly #open = new WeakMap<DatabaseConnection, ExactConnection>();
  readonly #inUse = new InFlight();

  constructor(inner: Driver, options: ExactDriverOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  init(): Promise<void> {
    return this.#inner.init();
  }

  async acquireConnection(): Promise<ExactConnection> {
    this.#inUse.start();
    try {
      await this.#options.pause?.();
      const inner = await this.#inner.acquireConnection();
      const known = this.#open.get(inner);
      if (known !== undefined) return known;
      const made = new ExactConnection(inner, this.#options);
      this.#open.set(inner, made);
      return made;
    } catch (error) {
      this.#inUse.end();
      throw this.#options.translate(error);
    }
  }

  async beginTransaction(connection: ExactConnection, settings: TransactionSettings): Promise<void> {
    const { begin, attempt } = this.#options;
    await this.#translated(() =>
      begin === undefined
        ? this.#inner.beginTransaction(connection.inner, settings)
        : attempt(async () => void (await connection.inner.executeQuery(CompiledQuery.raw(begin)))),
    );
    connection.inTransaction = true;
  }

  async commitTransaction(connection: ExactConnection): Promise<void> {
    await this.#translated(() => this.#inner.commitTransaction(connection.inner));
    connection.inTransaction = false;
  }

  async rollbackTransaction(connection: ExactConnection): Promise<void> {
    connection.inTransaction = false;
    // SQLite ends a transaction by itself when the disk is full.
    if (this.#options.isInTransaction?.() === false) return;
    // What failed before is what counts. If the connection is gone, so is the transaction.
    await this.#inner.rollbackTransaction(connection.inner).catch(() => {});
  }

  releaseConnection(connection: ExactConnection): Promise<void> {
    connection.inTransaction = false;
    this.#inUse.end();
    return this.#inner.releaseConnection(connection.inner);
  }

  /** After everything that is in progress. */
  async destroy(): Promise<void> {
    await this.#inUse.whenIdle();
    await this.#inner.destroy();
  }

  async #translated(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      throw this.#options.translate(error);
    }
  }
}

class ExactConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  inTransaction = false;
  readonly #options: ExactDriverOptions;

  constructor(inner: DatabaseConnection, options: ExactDriverOptions) {
    this.inner = inner;
    this.#options = options;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const parameters = storable(query.parameters);
    const run = (): Promise<QueryResult<Row>> => this.inner.executeQuery<Row>({ ...query, parameters });
    try {
      // Within a transaction nothing is tried again: what came before it may be gone.
      const result = this.inTransaction ? await run() : await this.#options.attempt(run);
      restoreTexts(result.rows);
      return result;
    } catch (error) {
      throw this.#options.translate(error);
    }
  }

  // eslint-disable-next-line require-yield -- nothing here streams; the interface wants it
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error("queries of the store are not streamed");
  }
}

/**
 * Starts a text that a database cannot hold as it is: PostgreSQL refuses U+0000, and lone surrogates have no UTF-8. Servers
 * name their tools as they like, so such a text is written as JSON behind the marker, and read back exactly.
 */
const MARKER = "\u0001";

function storable(parameters: readonly unknown[]): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, value] of parameters.entries()) {
    if (typeof value !== "string") continue;
    if (!value.includes("\0") && !value.startsWith(MARKER) && value.isWellFormed()) continue;
    (copy ??= [...parameters])[index] = MARKER + JSON.stringify(value).replaceAll("\0", "\\u0000");
  }
  return copy ?? parameters;
}

function restoreTexts(rows: readonly unknown[]): void {
  for (const row of rows) {
    if (typeof row !== "object" || row === null) continue;
    // A row is a plain object by column, made for this query alone.
    const values = row as Record<string, unknown>;
    for (const key in values) {
      const value = values[key];
      if (typeof value === "string" && value.startsWith(MARKER)) values[key] = JSON.parse(value.slice(MARKER.length));
    }
  }
}
