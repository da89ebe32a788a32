/** What a hub says of its pins: to whoever listens, and in the audit log. */
import { DefinitionReports, type DefinitionReportsOptions } from "../definition-reports.ts";
import { countOf, kindDetail, MOST_NAMED, namesOf, type PinEvent, type PinName, titleOf } from "./pin-event.ts";

interface PinReportsOptions extends DefinitionReportsOptions {
  readonly onVisibilityChange: () => void;
}

export class PinReports {
  readonly #options: PinReportsOptions;
  readonly #reports: DefinitionReports;
  readonly #withNewResources = new Set<string>();

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
      case "recorded":
        if (!event.later) return;
        return this.#arrived("pin.recorded", event, "Pinned as offered now, before anyone has looked at them.");
      case "held":
        return this.#arrived(
          "pin.new",
          event,
          "Held until approved: toolcrib pins diff shows them, toolcrib pins approve accepts them.",
        );
      case "too-many": {
        const { server, count, most } = event;
        const message = `The server lists ${count} resources, and the first ${most} are pinned; the others count as new. If its resources come and go, set "pinResources": false in its entry.`;
        return events.emit("warning", { server, message });
      }
      case "masked": {
        const { server, file, pins } = event;
        const message = `A secret is in what the server says of itself (${namesOf(pins)}). It is masked in ${file}, which only you may read from now on. Find out why the server tells it.`;
        const origin = { source: server, name: originName(pins) };
        return this.#reports.warn("pin.masked", origin, message, { ...detailsOf(pins), file });
      }
      case "removed": {
        const message = `${event.file} was removed. Its ${event.pins} pins still hold and are written again; toolcrib pins reset forgets pins.`;
        events.emit("warning", { message });
        return this.#reports.record("pin.file_removed", null, { file: event.file, tools: event.pins });
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
        const { pin, diff } = event;
        const subject =
          pin.kind === "tool"
            ? `The definition of ${pin.tool} has`
            : pin.kind === "instructions"
              ? "The server's instructions have"
              : `The definition of the ${titleOf(pin)} has`;
        const message = `${subject} changed since it was first seen:\n${diff.join("\n")}`;
        const origin = { source: pin.server, name: pin.tool };
        return this.#reports.warn("pin.changed", origin, message, { ...kindDetail(pin.kind), diff: diff.slice(0, 20) });
      }
    }
  }

  /** Resources may come all day: after the first report of a server the others are in the audit log alone. */
  #arrived(name: string, { server, pins }: Extract<PinEvent, { type: "recorded" | "held" }>, what: string): void {
    const origin = { source: server, name: originName(pins) };
    const areResources = pins.every(({ kind }) => kind === "resource");
    if (areResources && this.#withNewResources.has(server)) return this.#reports.record(name, origin, detailsOf(pins));
    if (areResources) this.#withNewResources.add(server);
    const message = `New since this server was first seen: ${namesOf(pins)}. ${what}`;
    this.#reports.warn(name, origin, message, detailsOf(pins));
  }
}

/** Of several the kinds and numbers. */
function originName(pins: readonly PinName[]): string {
  const [only, another] = pins;
  return only !== undefined && another === undefined ? only.tool : countOf(pins);
}

function detailsOf(pins: readonly PinName[]): Record<string, unknown> {
  const shown = pins.slice(0, MOST_NAMED);
  const kinds = shown.some(({ kind }) => kind !== "tool") ? { kinds: shown.map(({ kind }) => kind) } : {};
  return { tools: shown.map(({ tool }) => tool), ...kinds, count: pins.length };
}
