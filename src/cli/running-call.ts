/** What `call`, `read` and `prompt` share: one use of a capability, shown and turned into an exit code. */
import type { Outcome } from "../model/outcome.ts";
import type { Progress, Result } from "../model/protocol.ts";
import type { Invocation } from "./command.ts";
import { exitCodeOf } from "./exit-code.ts";
import type { RunningHub } from "./running-hub.ts";
import { type SavedPart, SaveTarget } from "./save-content.ts";

/** `--out`, checked before anything is called. */
export function saveTarget({ flags, cwd }: Invocation): SaveTarget | undefined {
  const path = flags.text("out");
  return path === undefined ? undefined : new SaveTarget(path, { cwd, force: flags.has("force") });
}

interface Presentation<R extends Result> {
  readonly show: (result: R) => void;
  readonly parts: (result: R) => SavedPart[];
  readonly target: SaveTarget | undefined;
}

/** Prints the result or the error of an Outcome and gives the exit code. A tool's own error result is printed too. */
export function present<R extends Result>(
  { out }: Invocation,
  running: RunningHub,
  outcome: Outcome<R>,
  { show, parts, target }: Presentation<R>,
): number {
  out.transient("");
  const { result } = outcome;
  if (result !== undefined) {
    if (out.json) out.value(result);
    else show(result);
    const saved = target?.save(parts(result)) ?? [];
    for (const path of saved) out.note(`saved ${path}`);
    if (target !== undefined && saved.length === 0) out.note("There was nothing to save.");
  }
  if (outcome.ok) return 0;
  // The hub only sees that the caller gave up; here it is known why.
  const error = outcome.error.code === "cancelled" ? (running.timedOut?.toObject() ?? outcome.error) : outcome.error;
  if (result === undefined) out.error(error);
  return exitCodeOf(error.code);
}

/** Shows progress on a terminal, in place. */
export function progressLine({ out }: Invocation): (progress: Progress) => void {
  return ({ progress, total, message }) => {
    const share = total === undefined || total <= 0 ? String(progress) : `${Math.round((100 * progress) / total)} %`;
    out.transient([share, message].filter((part) => part !== undefined).join("  "));
  };
}
