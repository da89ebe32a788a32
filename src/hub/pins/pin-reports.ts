/** What a hub says of its pins: to whoever listens, and in the audit log. */
import { DefinitionReports, type DefinitionReportsOptions } from "../definition-reports.ts";
import type { PinEvent } from "./pin-event.ts";

/** In a message or a record; the rest is counted. */
const MOST_NAMED = 20;

interface PinReportsOptions extends DefinitionReportsOptions {
  readonly onVisibilityChange: () => void;
}

export class PinReports {
  readonly #options: PinReportsOptions;
  readonly #reports: DefinitionReports;

  constructor(options: PinReportsOptions) {
    this.#options = options;
    this.#reports = new DefinitionReports(options);
  }

  take(event: PinEvent): void {
    this.#tell(event);
    this.#options.events.emit("pins", {});
  }

  #tell(event: PinEvent): void {
    const { events, onVisibilityChange } = this.#options;
    switch (event.type) {
      case "recorded": {
        if (!event.later) return;
        const { server, tools } = event;
        const shown = tools.slice(0, MOST_NAMED);
        const more = tools.length > shown.length ? ` and ${tools.length - shown.length} more` : "";
        const message = `New since this server was first seen: ${shown.join(", ")}${more}. Pinned as offered now, without anybody having looked.`;
        const name = tools.length === 1 ? (tools[0] ?? "") : `${tools.length} tools`;
        return this.#reports.warn("pin.recorded", { source: server, name }, message, {
          tools: shown,
          count: tools.length,
        });
      }
      case "removed": {
        const message = `${event.file} was removed. Its ${event.tools} pins still hold and are written again; toolcrib pins reset forgets pins.`;
        events.emit("warning", { message });
        return this.#reports.record("pin.file_removed", null, { file: event.file, tools: event.tools });
      }
      case "edited": {
        const { changed, forgotten } = event;
        const named = { changed: changed.slice(0, MOST_NAMED), forgotten: forgotten.slice(0, MOST_NAMED) };
        return this.#reports.record("pin.file_changed", null, { ...named, count: changed.length + forgotten.length });
      }
      case "approved":
        return;
      case "updated":
        return onVisibilityChange();
      case "problem":
        return events.emit("warning", { message: `${event.message} ${event.hint}` });
      case "changed": {
        const { server, tool, diff } = event;
        const message = `The definition of ${tool} has changed since it was first seen:\n${diff.join("\n")}`;
        return this.#reports.warn("pin.changed", { source: server, name: tool }, message, { diff: diff.slice(0, 20) });
      }
    }
  }
}
