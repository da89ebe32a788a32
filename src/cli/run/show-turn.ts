/** Runs one turn of the agent: shows it as it happens, lets it be interrupted, and returns an exit code. */
import type { Agent, AgentEvent, EndReason, PlanEntry, ToolCallEvent } from "../../agent/agent-options.ts";
import { describeBlock } from "../../model/content.ts";
import type { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { exitCodeOf } from "../command.ts";
import type { Output } from "../output.ts";
import { markdownRenderer } from "./markdown.ts";
import { CommandTimeout, signalExitCode } from "../signals.ts";
import { clip, firstLine } from "../table.ts";

type End = Extract<AgentEvent, { type: "end" }>;

interface Turn {
  readonly view: TurnView;
  readonly out: Output;
  readonly signal: AbortSignal;
}

const STOPPED: Readonly<Record<Exclude<EndReason, "done" | "error">, string>> = {
  cancelled: "The turn was cancelled.",
  steps: "The model reached the maximum number of steps. Raise it with --max-steps or agent.maxSteps.",
  tokens: "The run reached the maximum number of tokens. Raise it with --max-tokens or agent.maxTokens.",
  length: "The answer reached the model's own length limit and was cut off.",
  refusal: "The model refused to answer.",
};

const DENIED_EXIT = exitCodeOf("denied");

/** Resolves with the exit code. */
export async function runTurn(
  agent: Agent,
  prompt: string | readonly ContentBlock[],
  { view, out, signal }: Turn,
): Promise<number> {
  const ended = new Set<string>();
  let end: End | undefined;
  for await (const event of agent.run(prompt, { signal })) {
    view.show(withDenialHint(event));
    if (event.type === "tool-call") ended.add(event.state);
    if (event.type === "end") end = event;
  }
  if (end === undefined) return exitCodeOf("internal");
  reportEnd(end, out);
  if (end.reason === "error") return exitCodeOf(end.error?.code ?? "internal");
  if (end.reason !== "done") return 1;
  // The model may have answered anyway, but what was asked for did not happen.
  return ended.has("denied") && !ended.has("done") ? DENIED_EXIT : 0;
}

function reportEnd({ reason, error }: End, out: Output): void {
  // With --json it is in the last event.
  if (out.json || reason === "done") return;
  if (error !== undefined && reason !== "cancelled") out.error(error);
  else if (reason !== "error") out.labelled("yellow", "stopped:", STOPPED[reason]);
}

export interface TurnView {
  show(event: AgentEvent): void;
  /** Holds all output until `resume`, while a question is open. */
  pause(): void;
  resume(): void;
}

export function turnView(out: Output, { verbose }: { readonly verbose: boolean }): TurnView {
  return out.json ? new EventLines(out) : new TurnText(out, verbose);
}

class EventLines implements TurnView {
  readonly #out: Output;

  constructor(out: Output) {
    this.#out = out;
  }

  show(event: AgentEvent): void {
    // The hub has masked tool results, and the answer is the model's own text.
    const masked = event.type === "notice" || event.type === "end" ? this.#out.redactor.maskAll(event) : event;
    this.#out.record(masked);
  }

  pause(): void {}

  resume(): void {}
}

const LABELS = {
  done: ["green", "done   "],
  failed: ["red", "failed "],
  denied: ["yellow", "denied "],
  cancelled: ["yellow", "stopped"],
} as const;

const MAX_REASON_LENGTH = 300;
/** Of an unfinished line: its end, as far as most terminals show it. */
const MAX_PARTIAL_LENGTH = 76;

/**
 * On a terminal, text appears as it arrives. In a pipe, stdout gets only the final answer; text between calls goes to stderr.
 */
class TurnText implements TurnView {
  readonly #out: Output;
  readonly #verbose: boolean;
  /** Text that may turn out to be the answer. */
  #pending = "";
  /** The content of the current line. */
  #open: "text" | "thought" | "transient" | undefined;
  readonly #started = new Map<string, number>();
  /** Events that arrived while a question was open, with their times. */
  #held: { readonly event: AgentEvent; readonly at: number }[] | undefined;

  /** Renders the text, where styles can be shown. */
  #markdown: ((line: string) => string | undefined) | undefined;
  /** The line of that text which has not ended yet. */
  #line = "";

  constructor(out: Output, verbose: boolean) {
    this.#out = out;
    this.#verbose = verbose;
    this.#markdown = out.isStyled ? markdownRenderer(out) : undefined;
  }

  show(event: AgentEvent): void {
    if (this.#held === undefined) this.#show(event, performance.now());
    else this.#held.push({ event, at: performance.now() });
  }

  pause(): void {
    this.#makeRoom();
    this.#held = [];
  }

  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const { event, at } of held) this.#show(event, at);
  }

  #show(event: AgentEvent, at: number): void {
    switch (event.type) {
      case "text":
        return this.#text(event.text);
      case "thought":
        return this.#thought(event.text);
      case "tool-call":
        return this.#call(event, at);
      case "plan":
        this.#makeRoom();
        for (const { status, content } of event.entries) this.#out.note(`  ${MARKS[status]} ${firstLine(content)}`);
        return;
      case "notice":
        this.#makeRoom();
        return event.level === "warning" ? this.#out.warn(event.message) : this.#out.note(event.message);
      case "usage":
        return;
      case "end":
        return this.#end(event);
    }
  }

  /** Ends the current line. */
  #makeRoom(): void {
    if (this.#open === "transient") this.#out.transient("");
    if (this.#open === "thought") this.#out.aside("\n");
    if (this.#open === "text") this.#endText();
    this.#open = undefined;
    if (this.#pending === "") return;
    this.#out.note(this.#pending.trimEnd());
    this.#pending = "";
  }

  #text(text: string): void {
    if (!this.#out.isLive) {
      this.#pending += text;
      return;
    }
    if (this.#open !== "text") this.#makeRoom();
    this.#open = text.endsWith("\n") ? undefined : "text";
    if (this.#markdown === undefined) return this.#out.piece(text);
    const lines = (this.#line + text).split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) this.#renderLine(line);
    // What a person can read already; its marks are rendered when the line is complete.
    this.#out.transient(this.#line.slice(-MAX_PARTIAL_LENGTH));
  }

  #endText(): void {
    if (this.#markdown === undefined) return this.#out.piece("\n");
    this.#renderLine(this.#line);
    this.#line = "";
  }

  #renderLine(line: string): void {
    this.#out.transient("");
    const rendered = this.#markdown?.(line);
    if (rendered !== undefined) this.#out.line(rendered);
  }

  #thought(text: string): void {
    if (!this.#verbose) return;
    if (this.#open !== "thought") this.#makeRoom();
    this.#out.aside(text);
    this.#open = text.endsWith("\n") ? undefined : "thought";
  }

  #call(event: ToolCallEvent, at: number): void {
    this.#makeRoom();
    switch (event.state) {
      case "pending":
        if (event.progress === undefined) return;
        return this.#out.labelled("yellow", "  waits", `${event.title}  ${event.progress.message ?? ""}`);
      case "waiting":
        this.#started.delete(event.id);
        return;
      case "running":
        if (!this.#started.has(event.id)) this.#started.set(event.id, at);
        this.#out.transient(`running  ${event.title}${progressOf(event)}`);
        this.#open = "transient";
        return;
      case "done":
      case "failed":
      case "denied":
      case "cancelled": {
        const [style, label] = LABELS[event.state];
        const started = this.#started.get(event.id);
        this.#started.delete(event.id);
        const took = started === undefined ? "" : `  ${duration(at - started)}`;
        return this.#out.labelled(style, `  ${label}`, `${event.title}${took}${reasonOf(event)}`);
      }
    }
  }

  #end({ text, usage }: Extract<AgentEvent, { type: "end" }>): void {
    if (!this.#out.isLive) {
      this.#pending = "";
      if (text !== "") this.#out.line(text.trimEnd());
    }
    this.#makeRoom();
    // An answer may end inside a code block.
    this.#markdown &&= markdownRenderer(this.#out);
    if (this.#verbose) this.#out.note(`tokens: ${usage.input} in, ${usage.output} out`);
  }
}

function progressOf({ progress }: ToolCallEvent): string {
  if (progress === undefined) return " …";
  const { progress: done, total, message } = progress;
  const share = total === undefined || total <= 0 ? String(done) : `${Math.round((100 * done) / total)} %`;
  return [" …", share, message].filter((part) => part !== undefined).join("  ");
}

/** The reason of a failure, on one line. */
function reasonOf({ state, error, content }: ToolCallEvent): string {
  if (state === "done" || state === "cancelled") return "";
  const said = error === undefined ? firstLine((content ?? []).map(describeBlock).join("\n")) : error.message;
  const hint = state === "denied" && error?.hint !== undefined ? ` ${error.hint}` : "";
  return said === "" ? "" : `\n           ${clip(said, MAX_REASON_LENGTH)}${hint}`;
}

function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const MARKS: Readonly<Record<PlanEntry["status"], string>> = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

/** For a call that was denied because it could not be asked for: replaces the hub's hint with one for `toolcrib run`. */
function withDenialHint(event: AgentEvent): AgentEvent {
  if (event.type !== "tool-call" || event.state !== "denied") return event;
  const { error } = event;
  const rule = error?.details?.["rule"];
  // There is no hint if the user denied it.
  if (error?.hint === undefined || !isJsonObject(rule) || rule["list"] !== "ask") return event;
  const otherwise = rule["level"] === "session" ? "use --mode auto" : `change the rule in ${String(rule["where"])}`;
  return { ...event, error: { ...error, hint: `Run it on a terminal to approve calls, or ${otherwise}.` } };
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

interface InterruptOptions {
  /** Ctrl-C during a turn ends the turn and not the program. */
  readonly keepsRunning: boolean;
  readonly timeoutMs?: number | undefined;
}

/** Ctrl-C, SIGTERM and --timeout, which end a turn or the whole program. */
export class Interrupts {
  readonly #keepsRunning: boolean;
  readonly #timeout: CommandTimeout;
  readonly #stopped = new AbortController();
  readonly #ending: AbortSignal;
  #turn: AbortController | undefined;
  #signal: NodeJS.Signals | undefined;

  constructor({ keepsRunning, timeoutMs }: InterruptOptions) {
    this.#keepsRunning = keepsRunning;
    this.#timeout = new CommandTimeout(timeoutMs);
    this.#ending = AbortSignal.any([this.#stopped.signal, this.#timeout.signal]);
    for (const name of SIGNALS) process.on(name, this.#onSignal);
  }

  /** Aborts when the program is to end. */
  get ending(): AbortSignal {
    return this.#ending;
  }

  get timedOut(): ToolcribError | undefined {
    return this.#timeout.error;
  }

  /** Undefined unless a signal or the timeout ends the program. */
  get exitCode(): number | undefined {
    if (this.#signal !== undefined) return signalExitCode(this.#signal);
    return this.timedOut && exitCodeOf(this.timedOut.code);
  }

  /** Aborts when the turn is to end. */
  beginTurn(): AbortSignal {
    this.#turn = new AbortController();
    return AbortSignal.any([this.#turn.signal, this.#ending]);
  }

  endTurn(): void {
    this.#turn = undefined;
  }

  /** Like Ctrl-C, for a terminal in raw mode, which delivers it as a key and not as a signal. */
  interrupt(): void {
    this.#onSignal("SIGINT");
  }

  stop(): void {
    this.#timeout.stop();
    for (const name of SIGNALS) process.off(name, this.#onSignal);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    if (signal === "SIGINT" && this.#keepsRunning && this.#turn?.signal.aborted === false) {
      this.#turn.abort();
      return;
    }
    // A second signal ends the process at once; child processes are killed on exit.
    if (this.#signal !== undefined) process.exit(signalExitCode(signal));
    this.#signal = signal;
    this.#stopped.abort();
  };
}
