/** The output and log messages of servers, with times; and the end of one program's output. */
import { stripVTControlCharacters } from "node:util";
import { MaskedText } from "../../secrets/masked-text.ts";

export interface LogLine {
  /** Counts the lines of the server. */
  readonly seq: number;
  /** ISO time at which it came. */
  readonly at: string;
  /** `log`: a log message of the protocol. */
  readonly source: "stderr" | "log";
  /** Of a line of stderr as far as a word at its beginning says so. */
  readonly level: LogLevel | null;
  readonly text: string;
}

const LEVELS = ["debug", "info", "warning", "error"] as const;
export type LogLevel = (typeof LEVELS)[number];

const MAX_LOG_LINES = 1000;
const MAX_LOG_CHARACTERS = 256 * 1024;
const MAX_LINE_CHARACTERS = 4096;
/** Of a longer line this much is looked at, so that a secret is known as one although only a part of the line is kept. */
const MAX_MASKED = 8 * MAX_LINE_CHARACTERS;

interface Log {
  readonly lines: LogLine[];
  /** Of a line without an end yet. */
  rest: Buffer;
  /** Whether the rest has lost its beginning. */
  isCut: boolean;
  seq: number;
  characters: number;
}

/**
 * The last lines of each server, over restarts. They may hold secrets: whoever shows them masks them. Only where a line is cut
 * that is done here, because half a secret is not recognised later.
 */
export class ServerLog {
  readonly #servers = new Map<string, Log>();
  readonly #mask: (text: string) => string;
  readonly #now: () => number;

  constructor(mask: (text: string) => string, now: () => number = Date.now) {
    this.#mask = mask;
    this.#now = now;
  }

  /** Another program of that server: it begins on a line of its own. */
  begin(server: string): void {
    const log = this.#servers.get(server);
    if (log !== undefined && log.rest.length > 0) this.push(server, NEW_LINE);
  }

  push(server: string, chunk: Buffer): void {
    const log = this.#of(server);
    const bytes = log.rest.length === 0 ? chunk : Buffer.concat([log.rest, chunk]);
    const end = bytes.lastIndexOf(NEW_LINE);
    const rest = bytes.subarray(end + 1);
    const wasCut = log.isCut;
    // Copied, because a view would keep the whole pooled chunk in memory. A line without an end is cut.
    log.rest = Buffer.from(rest.subarray(-MAX_MASKED));
    log.isCut = rest.length > MAX_MASKED || (wasCut && end === -1);
    if (end === -1) return;
    const lines = bytes.toString("utf8", 0, end).split("\n");
    for (const [index, line] of lines.entries()) {
      if (index < lines.length - MAX_LOG_LINES) continue;
      const whole = shownText(line);
      const text = index === 0 && wasCut ? this.#end(whole) : this.#beginning(whole);
      if (text !== "") this.#add(server, "stderr", levelOf(text), text);
    }
  }

  /** A log message of the protocol, whose levels are those of syslog. */
  note(server: string, level: string, text: string): void {
    this.#add(server, "log", SYSLOG[level] ?? "info", this.#beginning(shownText(text)));
  }

  /** The oldest first. */
  entries(server: string): readonly LogLine[] {
    return this.#servers.get(server)?.lines ?? [];
  }

  /** The last lines that its programs wrote, also one that is not complete. */
  lines(server: string): string[] {
    const log = this.#servers.get(server);
    if (log === undefined) return [];
    const rest = this.#end(shownText(log.rest.toString("utf8")));
    const lines = log.lines.flatMap(({ source, text }) => (source === "stderr" ? [text] : []));
    return [...lines, ...(rest === "" ? [] : [rest])].slice(-MAX_STDERR_LINES);
  }

  forget(server: string): void {
    this.#servers.delete(server);
  }

  #of(server: string) {
    let log = this.#servers.get(server);
    if (log === undefined)
      this.#servers.set(server, (log = { lines: [], rest: Buffer.alloc(0), isCut: false, seq: 0, characters: 0 }));
    return log;
  }

  #beginning(line: string): string {
    if (line.length <= MAX_LINE_CHARACTERS) return line;
    const masked = new MaskedText(line.slice(0, MAX_MASKED), this.#mask);
    return `${masked.slice(0, MAX_LINE_CHARACTERS, { withCut: true })}…`;
  }

  #end(line: string): string {
    if (line.length <= MAX_LINE_CHARACTERS) return line;
    const last = line.slice(-MAX_MASKED);
    const masked = new MaskedText(last, this.#mask);
    return masked.slice(last.length - MAX_LINE_CHARACTERS, last.length, { withCut: true });
  }

  #add(server: string, source: LogLine["source"], level: LogLevel | null, text: string): void {
    const log = this.#of(server);
    log.seq += 1;
    log.lines.push({ seq: log.seq, at: new Date(this.#now()).toISOString(), source, level, text });
    log.characters += text.length;
    let surplus = Math.max(0, log.lines.length - MAX_LOG_LINES);
    for (let left = log.characters; left > MAX_LOG_CHARACTERS && surplus < log.lines.length - 1; surplus += 1)
      left -= log.lines[surplus]?.text.length ?? 0;
    for (const { text: gone } of log.lines.splice(0, surplus)) log.characters -= gone.length;
  }
}

const NEW_LINE = Buffer.from("\n");
const MAX_STDERR_LINES = 50;

const SYSLOG: Readonly<Record<string, LogLevel>> = {
  debug: "debug",
  info: "info",
  notice: "info",
  warning: "warning",
  error: "error",
  critical: "error",
  alert: "error",
  emergency: "error",
};

/** Loggers write the level first, or after a time. */
const LEVEL = /\b(?:(debug|trace)|(info|notice)|(warn(?:ing)?)|(error|fatal|critical|exception|panic))\b/i;
const LEVEL_WITHIN = 60;

function levelOf(text: string): LogLevel | null {
  const found = LEVEL.exec(text.slice(0, LEVEL_WITHIN));
  return found === null ? null : (LEVELS[found.slice(1).findIndex((part) => part !== undefined)] ?? null);
}

/** Free of terminal control sequences: it is shown to people. */
function shownText(line: string): string {
  return stripVTControlCharacters(line).replace(CONTROL, "").trimEnd();
}

const MAX_CHARACTERS = 8 * 1024;
/** Twice that, so that a secret which is cut was read whole. */
const MAX_BYTES = 2 * MAX_CHARACTERS;
const MAX_LINES = 20;
// oxlint-disable-next-line no-control-regex -- control characters are what it is there to remove
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

const ERROR = /^(?:Uncaught )?[\w.]*(?:Error|Exception)\b.*:/;

/** The end of what a child wrote to stderr, however much that was: it is what explains an exit to a person. */
export class StderrTail {
  readonly #mask: (text: string) => string;
  #parts: Buffer[] = [];
  #bytes = 0;
  #cut = false;

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  push(chunk: Buffer): void {
    // Copied, because a view would keep the whole pooled chunk in memory.
    this.#parts.push(Buffer.from(chunk.length > MAX_BYTES ? chunk.subarray(-MAX_BYTES) : chunk));
    if (chunk.length > MAX_BYTES) this.#cut = true;
    this.#bytes += Math.min(chunk.length, MAX_BYTES);
    // Joined only now and then: a flood of tiny writes must not cost a copy each.
    if (this.#bytes > 2 * MAX_BYTES || this.#parts.length > 256) this.#compact();
  }

  /** Free of terminal control sequences, because it is shown to people, and of secrets: half of one would not be recognised. */
  text(maxLines: number = MAX_LINES): string {
    this.#compact();
    const shown = (this.#parts[0] ?? Buffer.alloc(0)).toString("utf8").split(/\r?\n/).map(shownText).join("\n");
    const surplus = shown.length - MAX_CHARACTERS;
    const masked = new MaskedText(shown, this.#mask);
    const lines = masked.slice(Math.max(0, surplus), shown.length, { withCut: true }).split("\n");
    // The first line has lost its beginning.
    if ((this.#cut || surplus > 0) && lines.length > 1) lines.shift();
    const kept = lines.filter((line) => line !== "").slice(-MAX_LINES);
    const last = kept.slice(-maxLines);
    // Before its stack a program says what went wrong; without that line the stack explains little.
    const error = kept.slice(0, kept.length - last.length).findLast((line) => ERROR.test(line));
    return [...(error === undefined || last.some((line) => ERROR.test(line)) ? [] : [error]), ...last].join("\n");
  }

  #compact(): void {
    const all = Buffer.concat(this.#parts);
    if (all.length > MAX_BYTES) this.#cut = true;
    this.#parts = [all.length > MAX_BYTES ? Buffer.from(all.subarray(-MAX_BYTES)) : all];
    this.#bytes = this.#parts[0]?.length ?? 0;
  }
}
