/** Pins, the config, and warnings. */
import type { Tell } from "./feed-event.ts";
import type { FeedHub } from "./feed-hub.ts";

export function tellSettings(hub: FeedHub, tell: Tell): (() => void)[] {
  return [
    hub.on("pins", () => tell("pins.changed", {})),
    hub.on("reload", () => tell("config.reloaded", {})),
    hub.on("warning", ({ server, message }) => tell("warning", { server, message })),
  ];
}
