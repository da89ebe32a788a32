/**
 * Everything that a command writes: results to stdout, the rest to stderr, and with --json only JSON on stdout. Secrets are
 * masked in everything but results, which the hub has already masked and which may contain token-like text. Hidden
 * characters are shown as `\u{…}`, and escaped in JSON, on terminals and in pipes: piped text often ends up on a terminal
 * or in the context of a model. Colour is added last.
 */
import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";
import { styleText } from "node:util";
import type { ErrorObject } from "../model/errors.ts";
import { terminalJson, terminalLine, terminalText } from "../base/visible-text.ts";
import { Redactor } from "../secrets/redactor.ts";
import type { Log } from "../telemetry/log.ts";
import { clip, type Column, growingTable, renderTable } from "./table.ts";

/** The part of a stream that output needs. */
export type Sink = Writable & { readonly isTTY?: boolean; readonly columns?: number };

const STYLES = ["bold", "dim", "red", "green", "yellow", "cyan"] as const;
type Style = (typeof STYLES)[number];
const CHANGE_STYLES: Readonly<Record<string, Style>> = { "+": "green", "-": "red", "!": "yellow" };

const CLEAR_LINE = "\r\u001b[K";
const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] as const;
const SPINNER_MS = 100;
const BAR_WIDTH = 24;
/** Of a terminal that does not say its size. */
const DEFAULT_WIDTH = 80;
const INDENT = "  ";

interface OutputOptions {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly env: NodeJS.ProcessEnv;
  readonly json: boolean;
  readonly quiet: boolean;
  /** Makes the log whose lines are everything on stderr. */
  readonly jsonLog?: ((write: (line: string) => void, mask: (text: string) => string) => Log) | undefined;
  readonly redactor?: Redactor;
}

export class Output {
  readonly json: boolean;
  readonly quiet: boolean;
  /** Knows the secrets of the hub that runs for this command. */
  readonly redactor: Redactor;
  readonly #stdout: Sink;
  readonly #stderr: Sink;
  readonly #env: NodeJS.ProcessEnv;
  readonly #log: Log | undefined;
  readonly #warned = new Set<string>();
  /** The line that is shown now and will be overwritten. */
  #transient = "";
  /** Marks painted text until it is written. It is random, so that text from a server cannot paint itself. */
  readonly #mark = `<${randomBytes(12).toString("hex")}`;
  readonly #marks = new RegExp(`${this.#mark}([0-9/])>`);

  constructor(options: OutputOptions) {
    this.json = options.json;
    this.quiet = options.quiet;
    this.redactor = options.redactor ?? new Redactor();
    this.#stdout = options.stdout;
    this.#stderr = options.stderr;
    this.#env = options.env;
    this.#log = options.jsonLog?.(
      (line) => void this.#stderr.write(line),
      (text) => this.redactor.mask(text),
    );
  }

  /** One or more lines of the result, for people. */
  line(text: string): void {
    this.#write(this.#stdout, `${this.#painted(text)}\n`);
  }

  /** Whether stdout is a terminal. */
  get isLive(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** Whether parts of a result are shown as they come: to a person at a terminal, not to programs. */
  get showsParts(): boolean {
    return this.isLive && !this.json && this.#log === undefined;
  }

  /** Part of a line of the result; the caller ends the line. */
  piece(text: string): void {
    this.#write(this.#stdout, terminalText(text));
  }

  /** One of several results for programs, as one line. */
  record(value: unknown): void {
    this.#write(this.#stdout, `${terminalJson(value)}\n`);
  }

  /** The result for programs. */
  value(value: unknown): void {
    this.#write(this.#stdout, `${terminalJson(value, 2)}\n`);
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void {
    const width = this.#stdout.isTTY === true ? widthOf(this.#stdout) : undefined;
    const lines = renderTable(columns, rows, { width, paintTitle: (text) => this.paint("bold", text) });
    this.line(lines.join("\n"));
  }

  /** Writes the titles, and returns a function that writes a row. `rows` are those that will come, as far as they are known. */
  growingTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): (row: Row) => void {
    const { title, line } = growingTable(columns, rows, widthOf(this.#stdout) ?? DEFAULT_WIDTH);
    this.line(this.paint("bold", title));
    return (row) => this.line(line(row));
  }

  /** The rows of a table without titles, indented below a heading. */
  group<Row>(heading: string, columns: readonly Column<Row>[], rows: readonly Row[]): void {
    const width = (widthOf(this.#stdout) ?? DEFAULT_WIDTH) - INDENT.length;
    const lines = renderTable(columns, rows, { width }).slice(1);
    this.line([heading, ...lines.map((line) => `${INDENT}${line}`)].join("\n"));
  }

  /** A list for programs or as a table; `nothing` is the note for an empty one. */
  list<Row>(columns: readonly Column<Row>[], rows: readonly Row[], nothing: string): void {
    if (this.json) this.value(rows);
    else if (rows.length === 0) this.note(nothing);
    else this.table(columns, rows);
  }

  get prompts(): Sink {
    this.transient("");
    return this.#stderr;
  }

  /** Information beside the result. */
  note(text: string): void {
    if (this.#log !== undefined) return this.#log.info(text);
    if (!this.quiet) this.#write(this.#stderr, `${this.#clean(text)}\n`);
  }

  /** Each text is shown once. */
  warn(text: string): void {
    if (this.quiet || this.#warned.has(text)) return;
    this.#warned.add(text);
    if (this.#log !== undefined) return this.#log.warn(text);
    this.#write(this.#stderr, `${this.#paintOn(this.#stderr, "yellow", "warning:")} ${this.#clean(text)}\n`);
  }

  labelled(style: Style, label: string, text: string): void {
    if (this.#log !== undefined) return this.#log.info(`${label} ${text}`);
    if (!this.quiet) this.#write(this.#stderr, `${this.#paintOn(this.#stderr, style, label)} ${this.#clean(text)}\n`);
  }

  /** Part of a line beside the result, dimmed on a terminal. */
  aside(text: string): void {
    if (!this.quiet) this.#write(this.#stderr, this.#paintOn(this.#stderr, "dim", this.#clean(text)));
  }

  /** The error object on stdout with --json, text on stderr otherwise. */
  error(error: ErrorObject): void {
    if (this.json) {
      this.value({ error: this.redactor.maskAll(error) });
      return;
    }
    if (this.#log !== undefined) return this.#log.error(error.message, { code: error.code, hint: error.hint });
    this.#write(this.#stderr, `${this.#paintOn(this.#stderr, "red", "error:")} ${this.#clean(error.message)}\n`);
    if (error.hint !== undefined) this.#write(this.#stderr, `  ${this.#clean(error.hint)}\n`);
  }

  /** A line on stderr that what is written next overwrites; an empty text clears it. Only for a person at a terminal. */
  transient(text: string): void {
    if (this.#stderr.isTTY !== true || this.quiet || this.json || this.#log !== undefined) return;
    if (this.#env["TERM"] === "dumb" || (text === "" && this.#transient === "")) return;
    this.#transient = text;
    const line = terminalLine(this.redactor.mask(text));
    this.#stderr.write(`${CLEAR_LINE}${clip(line, (widthOf(this.#stderr) ?? DEFAULT_WIDTH) - 1)}`);
  }

  /** Shows that something is in progress until it is stopped. */
  spinner(text: () => string): { readonly redraw: () => void; readonly stop: () => void } {
    let frame = 0;
    const redraw = (): void => this.transient(`${SPINNER[frame % SPINNER.length] ?? ""} ${text()}`);
    const timer = setInterval(() => {
      frame += 1;
      redraw();
    }, SPINNER_MS).unref();
    redraw();
    const stop = (): void => {
      clearInterval(timer);
      this.transient("");
    };
    return { redraw, stop };
  }

  /** Returns a function to call with each step. Redraws only if something visible changes. */
  progressBar(what: string, shownAs: (count: number) => string = String): (done: number, of: number) => void {
    let shown = "";
    return (done, of) => {
      const state = `${what} ${bar(done, of)}`;
      if (done >= of) this.transient("");
      else if (state !== shown) this.transient(`${state} ${shownAs(done)}/${shownAs(of)}`);
      shown = state;
    };
  }

  /** Whether `paint` has an effect. */
  get isStyled(): boolean {
    return !this.#isPlain(this.#stdout);
  }

  /** Coloured text for `line`. It contains marks until it is written. */
  paint(style: Style, text: string): string {
    if (this.#isPlain(this.#stdout)) return text;
    return `${this.#mark}${STYLES.indexOf(style)}>${text}${this.#mark}/>`;
  }

  /** A line of a diff, in the colour of its first character. */
  paintChange(line: string): string {
    const style = CHANGE_STYLES[line.charAt(0)];
    return style === undefined ? line : this.paint(style, line);
  }

  /** Resolves when everything is written; `process.exit` would cut off a pipe. */
  async flush(): Promise<void> {
    this.transient("");
    await Promise.all([this.#stdout, this.#stderr].map(drained));
  }

  /** Keeps the transient line below what is written. */
  #write(sink: Sink, text: string): void {
    const below = this.#transient;
    this.transient("");
    sink.write(text);
    if (below !== "" && text.endsWith("\n")) this.transient(below);
  }

  #clean(text: string): string {
    return terminalText(this.redactor.mask(text));
  }

  #painted(text: string): string {
    // split() puts the captured style between the parts.
    const [first = "", ...rest] = text.split(this.#marks);
    let shown = terminalText(first);
    for (let index = 0; index < rest.length; index += 2) {
      const style = STYLES[Number(rest[index])];
      const part = terminalText(rest[index + 1] ?? "");
      shown += style === undefined ? part : styleText(style, part, { validateStream: false });
    }
    return shown;
  }

  #paintOn(sink: Sink, style: Style, text: string): string {
    return this.#isPlain(sink) ? text : styleText(style, text, { validateStream: false });
  }

  #isPlain(sink: Sink): boolean {
    return sink.isTTY !== true || (this.#env["NO_COLOR"] ?? "") !== "" || this.#env["TERM"] === "dumb";
  }
}

/** The styles that an output writes, and the start of a line that the next one overwrites. */
// oxlint-disable-next-line no-control-regex
const WRITTEN = /(\u001b\[(?:0|1|2|22|31|32|33|36|39)m|\r\u001b\[K)/;

/** The output of a command in a process that is not trusted: its styles stay, anything else hidden is shown. */
export function writtenElsewhere(text: string): string {
  // split() puts what is captured at the odd places.
  return text
    .split(WRITTEN)
    .map((part, index) => (index % 2 === 1 ? part : terminalText(part)))
    .join("");
}

/** Such as `[######------------------] 25%`. */
export function bar(done: number, of: number): string {
  const part = of === 0 ? 1 : Math.min(1, done / of);
  const full = Math.round(part * BAR_WIDTH);
  return `[${"#".repeat(full)}${"-".repeat(BAR_WIDTH - full)}] ${Math.floor(part * 100)}%`;
}

/** A terminal of unknown size reports 0. */
function widthOf(sink: Sink): number | undefined {
  return sink.columns === undefined || sink.columns <= 0 ? undefined : sink.columns;
}

function drained(sink: Sink): Promise<void> {
  if (sink.destroyed || sink.writableEnded) return Promise.resolve();
  return new Promise((resolve) => {
    // The callback also runs, with an error, when the reader has gone.
    sink.write("", () => resolve());
  });
}
