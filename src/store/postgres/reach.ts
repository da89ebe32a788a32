/** Whether a database can be reached, by the last that was heard of it: a statement, or the connection that listens. */
import { ToolcribError } from "../../model/errors.ts";

export class Reach {
  #trouble: string | undefined;

  get trouble(): string | undefined {
    return this.#trouble;
  }

  answered(): void {
    this.#trouble = undefined;
  }

  /** Other failures are answers too. */
  failed(error: Error): void {
    if (error instanceof ToolcribError && error.code === "server_unavailable") this.#trouble = error.message;
  }
}
