/** One run of a tool, from the press of the button to its result. */
import { useEffect, useRef, useState } from "react";
import type { OutputOf } from "../../../../src/contract/operations.ts";
import { type Progress, runLive } from "../../api.ts";
import { failureOf } from "../../failure.ts";
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";

export type ToolResult = OutputOf<"callTool">;

export type ToolRun =
  | { readonly state: "none" }
  | { readonly state: "running"; readonly progress: Progress | undefined; readonly cancelling: boolean }
  | { readonly state: "done"; readonly result: ToolResult; readonly milliseconds: number }
  | { readonly state: "failed"; readonly error: unknown };

export function useToolRun(toolName: string) {
  const [run, setRun] = useState<ToolRun>({ state: "none" });
  const cancel = useRef<AbortController>(undefined);
  const last = useRef<Record<string, unknown>>({});
  // A call whose result is no longer needed is cancelled.
  useEffect(() => () => cancel.current?.abort(), []);
  const start = async (args: Record<string, unknown>): Promise<void> => {
    const controller = new AbortController();
    cancel.current = controller;
    last.current = args;
    const began = performance.now();
    setRun({ state: "running", progress: undefined, cancelling: false });
    try {
      const result = await runLive(
        "callTool",
        { toolName, args, questions: true },
        {
          signal: controller.signal,
          onProgress: (progress) => setRun((now) => (now.state === "running" ? { ...now, progress } : now)),
        },
      );
      setRun({ state: "done", result, milliseconds: performance.now() - began });
    } catch (error) {
      setRun(
        failureOf(error).code === "cancelled"
          ? { state: "failed", error: { code: "cancelled", message: t(toolWords.cancelled) } }
          : { state: "failed", error },
      );
    }
  };
  return {
    run,
    start,
    /** With the same arguments: a yes holds for these and no others. */
    again: () => start(last.current),
    stop: () => {
      setRun((now) => (now.state === "running" ? { ...now, cancelling: true } : now));
      cancel.current?.abort();
    },
  };
}
