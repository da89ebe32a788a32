/**
 * The log of a running hub, one line for each thing worth knowing. Not pino: a hub at rest has to stay small, and all that
 * is wanted is a level, two formats and masked secrets.
 */
import { type Clock, systemClock } from "../base/clock.ts";
import { escapeJson, terminalLine } from "../base/visible-text.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogThreshold = (typeof LOG_LEVELS)[number];
export const LOG_FORMATS = ["pretty", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

type Level = Exclude<LogThreshold, "silent">;

interface LogOptions {
  readonly write: (line: string) => void;
  readonly format: LogFormat;
  readonly level: LogThreshold;
  /** Masks secrets: in each text of a line before it is quoted, and in the finished line. */
  readonly mask: (line: string) => string;
  readonly clock?: Clock;
}

export class Log {
  readonly #options: LogOptions;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  get format(): LogFormat {
    return this.#options.format;
  }

  isEnabled(level: Level): boolean {
    return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(this.#options.level);
  }

  debug(message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.#log("debug", message, fields);
  }

  info(message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.#log("info", message, fields);
  }

  warn(message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.#log("warn", message, fields);
  }

  error(message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.#log("error", message, fields);
  }

  #log(level: Level, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (!this.isEnabled(level)) return;
    const { format, write, mask, clock = systemClock } = this.#options;
    const time = new Date(clock.now()).toISOString();
    // Quoting changes a text, and a secret in it would no longer be known as one.
    const quoted = (value: unknown): string =>
      escapeJson(JSON.stringify(value, (_key, part: unknown) => (typeof part === "string" ? mask(part) : part)));
    // Messages may come from servers: their line breaks must not look like lines of the log.
    const oneLine = (text: string): string => terminalLine(mask(text));
    // They come first in a line, and no field can take their place.
    const fixed = { time, level, message };
    const line =
      format === "json"
        ? quoted(Object.assign(fixed, fields, { ...fixed }))
        : `${time.slice(11, 19)} ${level.padEnd(5)} ${oneLine(message)}${rendered(fields, oneLine, quoted)}`;
    write(`${mask(line)}\n`);
  }
}

function rendered(
  fields: Readonly<Record<string, unknown>>,
  oneLine: (text: string) => string,
  quoted: (value: unknown) => string,
): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${typeof value === "string" ? oneLine(value) : quoted(value)}`)
    .join("");
}
