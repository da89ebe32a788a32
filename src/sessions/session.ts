import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Root } from "../model/protocol.ts";
import type { ElicitationCallback, SamplingCallback, SessionContext } from "../model/session.ts";
import { KeptResults } from "./kept-results.ts";

export interface SessionOptions {
  /** The door that opens it; for audit and messages. */
  readonly door?: string;
  /** What the session may see is narrowed to this role. A role that nothing names sees nothing. */
  readonly role?: string;
  /** True for the user who runs the hub. Sessions opened in-process are, unless they say otherwise. */
  readonly owner?: boolean;
  /** Offered to servers as a root. */
  readonly workspaceDir?: string;
  readonly onSample?: SamplingCallback;
  readonly onElicit?: ElicitationCallback;
}

/** One client's scope. */
export class Session implements SessionContext {
  readonly id = randomUUID();
  readonly door: string;
  readonly owner: boolean;
  declare readonly role?: string;
  declare readonly workspaceDir?: string;
  declare readonly onSample?: SamplingCallback;
  declare readonly onElicit?: ElicitationCallback;
  readonly roots: readonly Root[];
  readonly results = new KeptResults();
  readonly #closed = new AbortController();
  readonly #onClose: (session: Session) => void;

  constructor(options: SessionOptions = {}, onClose: (session: Session) => void = () => {}) {
    this.door = options.door ?? "library";
    this.owner = options.owner ?? true;
    if (options.role !== undefined) this.role = options.role;
    if (options.workspaceDir !== undefined) this.workspaceDir = resolve(options.workspaceDir);
    if (options.onSample !== undefined) this.onSample = options.onSample;
    if (options.onElicit !== undefined) this.onElicit = options.onElicit;
    this.roots = this.workspaceDir === undefined ? [] : [rootOf(this.workspaceDir)];
    this.#onClose = onClose;
  }

  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Aborts when the session closes; calls under way end as `cancelled`. */
  get closing(): AbortSignal {
    return this.#closed.signal;
  }

  close(): void {
    if (this.closed) return;
    this.#closed.abort();
    this.results.clear();
    this.#onClose(this);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function rootOf(dir: string): Root {
  return { uri: pathToFileURL(dir).href, name: dir.split(/[\\/]/).findLast((part) => part !== "") ?? dir };
}
