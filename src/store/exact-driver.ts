/** Around a dialect's own driver: text goes in and out exactly, and failures are told in the words of the error table. */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  type TransactionSettings,
} from "kysely";

interface ExactDriverOptions {
  /** Any failure of the database as the error that callers get. */
  readonly translate: (error: unknown) => Error;
  /** Runs a step that begins something new; may run it again. */
  readonly attempt: <Result>(step: () => Promise<Result>) => Promise<Result>;
  /** Before a connection is used. */
  readonly pause?: () => Promise<void>;
  /** Whether there is anything to take back; if absent, there is. */
  readonly isInTransaction?: () => boolean;
  /** Instead of what the dialect begins a transaction with. */
  readonly begin?: string;
}

export class ExactDriver implements Driver {
  readonly #inner: Driver;
  readonly #options: ExactDriverOptions;
  readonly #open = new WeakMap<DatabaseConnection, ExactConnection>();
  #inUse = 0;
  #whenIdle: (() => void) | undefined;

  constructor(inner: Driver, options: ExactDriverOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  init(): Promise<void> {
    return this.#inner.init();
  }

  async acquireConnection(): Promise<ExactConnection> {
    this.#inUse += 1;
    try {
      await this.#options.pause?.();
      const inner = await this.#inner.acquireConnection();
      const known = this.#open.get(inner);
      if (known !== undefined) return known;
      const made = new ExactConnection(inner, this.#options);
      this.#open.set(inner, made);
      return made;
    } catch (error) {
      this.#ended();
      throw this.#options.translate(error);
    }
  }

  async beginTransaction(connection: ExactConnection, settings: TransactionSettings): Promise<void> {
    const { begin, attempt } = this.#options;
    await this.#told(() =>
      begin === undefined
        ? this.#inner.beginTransaction(connection.inner, settings)
        : attempt(async () => void (await connection.inner.executeQuery(CompiledQuery.raw(begin)))),
    );
    connection.inTransaction = true;
  }

  async commitTransaction(connection: ExactConnection): Promise<void> {
    await this.#told(() => this.#inner.commitTransaction(connection.inner));
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
    this.#ended();
    return this.#inner.releaseConnection(connection.inner);
  }

  /** Behind everything that is under way. */
  async destroy(): Promise<void> {
    if (this.#inUse > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    await this.#inner.destroy();
  }

  #ended(): void {
    this.#inUse -= 1;
    if (this.#inUse === 0) this.#whenIdle?.();
  }

  async #told(step: () => Promise<void>): Promise<void> {
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
    const parameters = query.parameters.map((value) => (typeof value === "string" ? toStored(value) : value));
    const run = (): Promise<QueryResult<Row>> => this.inner.executeQuery<Row>({ ...query, parameters });
    try {
      // Within a transaction nothing is tried again: what came before it may be gone.
      const result = this.inTransaction ? await run() : await this.#options.attempt(run);
      for (const row of result.rows) restoreTexts(row);
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

function restoreTexts(row: unknown): void {
  if (typeof row !== "object" || row === null) return;
  // A row is a plain object by column, made for this query alone.
  const values = row as Record<string, unknown>;
  for (const key in values) {
    const value = values[key];
    if (typeof value === "string" && value.startsWith("\u0001")) values[key] = fromStored(value);
  }
}

/**
 * Text that a database cannot hold as it is: PostgreSQL refuses U+0000, and lone surrogates have no UTF-8. Servers name
 * their tools as they like, so such text is written as JSON behind a marker, and read back exactly.
 */
const MARKER = "\u0001";

function toStored(text: string): string {
  return !text.includes("\0") && !text.startsWith(MARKER) && text.isWellFormed()
    ? text
    : MARKER + JSON.stringify(text).replaceAll("\0", "\\u0000");
}

function fromStored(text: string): string {
  if (!text.startsWith(MARKER)) return text;
  // Only `toStored` writes the marker.
  return JSON.parse(text.slice(MARKER.length)) as string;
}
