/** Shows a turn of the agent to a person, or to a program. */
import type { AgentEvent, PlanEntry, ToolCallEvent } from "../../agent/events.ts";
import { describeBlock } from "../../model/content.ts";
import type { Output } from "../output.ts";
import { clip, firstLine } from "../text-width.ts";

export interface TurnView {
  show(event: AgentEvent): void;
  /** A question is about to be asked: nothing is written until `goOn`, and then what came meanwhile. */
  hold(): void;
  goOn(): void;
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
    // The hub has masked what tools gave. Text that belongs to the answer is the model's own.
    const masked = event.type === "notice" || event.type === "end" ? this.#out.redactor.maskAll(event) : event;
    this.#out.record(masked);
  }

  hold(): void {}

  goOn(): void {}
}

const LABELS = {
  done: ["green", "done   "],
  failed: ["red", "failed "],
  denied: ["yellow", "denied "],
  cancelled: ["yellow", "stopped"],
} as const;

const LONGEST_REASON = 300;

/**
 * On a terminal the text appears as it comes. In a pipe stdout gets the answer alone, which is known at the end; what the model
 * says between calls goes to stderr with them.
 */
class TurnText implements TurnView {
  readonly #out: Output;
  readonly #verbose: boolean;
  /** Text of which it is not known yet whether it is the answer. */
  #pending = "";
  /** What stands on the line that the cursor is in. */
  #open: "text" | "thought" | "transient" | undefined;
  readonly #started = new Map<string, number>();
  /** What came while a question was open, and when. */
  #held: { readonly event: AgentEvent; readonly at: number }[] | undefined;

  constructor(out: Output, verbose: boolean) {
    this.#out = out;
    this.#verbose = verbose;
  }

  show(event: AgentEvent): void {
    if (this.#held === undefined) this.#show(event, performance.now());
    else this.#held.push({ event, at: performance.now() });
  }

  hold(): void {
    this.#makeRoom();
    this.#held = [];
  }

  goOn(): void {
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
        for (const entry of event.entries) this.#out.note(planLine(entry));
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

  /** An empty line for what comes next. */
  #makeRoom(): void {
    if (this.#open === "transient") this.#out.transient("");
    if (this.#open === "thought") this.#out.aside("\n");
    if (this.#open === "text") this.#out.piece("\n");
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
    this.#out.piece(text);
    this.#open = text.endsWith("\n") ? undefined : "text";
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
        return;
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
    if (this.#verbose) this.#out.note(`tokens: ${usage.input} in, ${usage.output} out`);
  }
}

function progressOf({ progress }: ToolCallEvent): string {
  if (progress === undefined) return " …";
  const { progress: done, total, message } = progress;
  const share = total === undefined || total <= 0 ? String(done) : `${Math.round((100 * done) / total)} %`;
  return [" …", share, message].filter((part) => part !== undefined).join("  ");
}

/** Why it did not work, in a line. */
function reasonOf({ state, error, content }: ToolCallEvent): string {
  if (state === "done" || state === "cancelled") return "";
  const said = error === undefined ? firstLine((content ?? []).map(describeBlock).join("\n")) : error.message;
  const hint = state === "denied" && error?.hint !== undefined ? ` ${error.hint}` : "";
  return said === "" ? "" : `\n           ${clip(said, LONGEST_REASON)}${hint}`;
}

function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const MARKS: Readonly<Record<PlanEntry["status"], string>> = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

function planLine({ status, content }: PlanEntry): string {
  return `  ${MARKS[status]} ${firstLine(content)}`;
}
