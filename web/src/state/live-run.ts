/** One operation over the WebSocket, from the press of a button to its result; what servers ask meanwhile is asked on the page. */
import { useEffect, useRef, useState } from "react";
import type { CommandInput, CommandOutput, OperationName } from "../../../src/api-client/index.ts";
import { runLive } from "../api.ts";
import { failureOf } from "../failure.ts";

export type LiveRun<Output> =
  | { readonly state: "none" }
  | { readonly state: "running"; readonly before: Output | undefined }
  | { readonly state: "done"; readonly output: Output; readonly at: number }
  | { readonly state: "failed"; readonly error: unknown };

export function useLiveRun<Name extends OperationName>(name: Name) {
  const [run, setRun] = useState<LiveRun<CommandOutput<Name>>>({ state: "none" });
  const cancel = useRef<AbortController>(undefined);
  // What is no longer needed is cancelled.
  useEffect(() => () => cancel.current?.abort(), []);
  const start = async (input: CommandInput<Name>): Promise<void> => {
    cancel.current?.abort();
    const controller = new AbortController();
    cancel.current = controller;
    setRun((now) => ({ state: "running", before: now.state === "done" ? now.output : undefined }));
    try {
      const output = await runLive(name, input, { signal: controller.signal });
      if (!controller.signal.aborted) setRun({ state: "done", output, at: Date.now() });
    } catch (error) {
      if (controller.signal.aborted) setRun((now) => (cancel.current === controller ? { state: "none" } : now));
      else setRun({ state: "failed", error: failureOf(error) });
    }
  };
  return { run, start, stop: () => cancel.current?.abort() };
}
