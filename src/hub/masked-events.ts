import { Emitter } from "../model/emitter.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { HubEvents } from "./events.ts";

/** Events that quote servers, programs or configs. Records of calls are masked where they are written. */
const QUOTING: ReadonlySet<keyof HubEvents> = new Set(["log", "notice", "server", "warning"]);

/** The hub's events, with secrets masked before anybody hears of them. */
export class MaskedEvents extends Emitter<HubEvents> {
  readonly #redactor: Redactor;

  constructor(redactor: Redactor) {
    super();
    this.#redactor = redactor;
  }

  override emit<Name extends keyof HubEvents>(name: Name, event: HubEvents[Name]): void {
    super.emit(name, QUOTING.has(name) ? this.#redactor.maskAll(event) : event);
  }
}
