/** Ends a run with one plain line of counts, for programs that read the output; vitest's own summary is for people. */
import type { Reporter, TestModule } from "vitest/node";

type RunEnd = Parameters<NonNullable<Reporter["onTestRunEnd"]>>;

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** A file that could not be loaded and an error outside every test count as failed: a plain zero would hide them. */
export function countTests(modules: RunEnd[0], unhandledErrors: RunEnd[1]): Counts {
  const counts: Counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    const before = counts.failed;
    for (const test of module.children.allTests()) counts[outcomeOf(test)] += 1;
    if (module.state() === "failed" && counts.failed === before) counts.failed += 1;
  }
  return counts;
}

type Test = ReturnType<TestModule["children"]["allTests"]> extends Iterable<infer One> ? One : never;

function outcomeOf(test: Test): keyof Counts {
  const { state } = test.result();
  return state === "pending" ? "skipped" : state;
}

export default class ClosingLine implements Reporter {
  onTestRunEnd(...[modules, unhandledErrors]: RunEnd): void {
    const { passed, failed, skipped } = countTests(modules, unhandledErrors);
    // The default reporter writes its summary after this hook; the last thing before the exit comes after that.
    process.once("exit", () => process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`));
  }
}
