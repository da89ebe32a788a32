import type { Emitter } from "../model/emitter.ts";
import type { HubEvents } from "./events.ts";

const WARNINGS_KEPT = 200;

/** Warnings begin before anybody can listen, so the last of them are kept. */
export function keepWarnings(events: Emitter<HubEvents>): readonly HubEvents["warning"][] {
  const kept: HubEvents["warning"][] = [];
  events.on("warning", (warning) => {
    kept.push(warning);
    if (kept.length > WARNINGS_KEPT) kept.shift();
  });
  return kept;
}
