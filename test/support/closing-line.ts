/**
 * Ends a run with one plain line of counts, for programs that read the output; vitest's own summary is for people. Before it
 * are the tests that failed at first and passed when they were run again. In a whole run, a requirement whose tests were all
 * skipped without a printed reason counts as failed.
 */
import type { Reporter, TestModule, TestSpecification, Vitest } from "vitest/node";
import { SKIP_PREFIX } from "./skips.ts";

type RunEnd = Parameters<NonNullable<Reporter["onTestRunEnd"]>>;
type ConsoleLog = Parameters<NonNullable<Reporter["onUserConsoleLog"]>>[0];
type Test = ReturnType<TestModule["children"]["allTests"]> extends Iterable<infer One> ? One : never;

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** A file that could not be loaded and an error outside every test count as failed: a plain zero would hide them. */
function countTests(modules: RunEnd[0], unhandledErrors: RunEnd[1]): Counts {
  const counts: Counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    const before = counts.failed;
    for (const test of module.children.allTests()) counts[outcomeOf(test)] += 1;
    if (module.state() === "failed" && counts.failed === before) counts.failed += 1;
  }
  return counts;
}

/** Requirement ids in test titles that no test proved; files with a printed reason are excused. */
function unprovenIds(modules: RunEnd[0], excused: ReadonlySet<string>): string[] {
  const ran = new Set<string>();
  const cited = new Set<string>();
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const didRun = outcomeOf(test) !== "skipped" || excused.has(module.id);
      for (const [, id = ""] of test.fullName.matchAll(/\[([a-z]+-\d+[a-z]?)\]/g)) (didRun ? ran : cited).add(id);
    }
  }
  return [...cited].filter((id) => !ran.has(id)).toSorted();
}

/** The tests that passed only when they were run again, by file and name. */
function flakyTests(modules: RunEnd[0]): string[] {
  const flaky = modules.flatMap((module) => [...module.children.allTests()].filter((test) => test.diagnostic()?.flaky));
  return flaky.map((test) => `${test.module.relativeModuleId} > ${test.fullName}`);
}

function outcomeOf(test: Test): keyof Counts {
  const { state } = test.result();
  return state === "pending" ? "skipped" : state;
}

export default class ClosingLine implements Reporter {
  #vitest: Vitest | undefined;
  #isWholeRun = false;
  readonly #excused = new Set<string>();

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunStart(specifications: readonly TestSpecification[]): Promise<void> {
    const all = (await this.#vitest?.globTestSpecifications()) ?? [];
    this.#isWholeRun = specifications.length === all.length && this.#vitest?.config.testNamePattern === undefined;
  }

  onUserConsoleLog(log: ConsoleLog): void {
    if (!log.content.startsWith(SKIP_PREFIX) || log.taskId === undefined) return;
    const entity = this.#vitest?.state.getReportedEntityById(log.taskId);
    if (entity !== undefined) this.#excused.add(entity.type === "module" ? entity.id : entity.module.id);
  }

  onTestRunEnd(...[modules, unhandledErrors]: RunEnd): void {
    const counts = countTests(modules, unhandledErrors);
    const unproven = this.#isWholeRun ? unprovenIds(modules, this.#excused) : [];
    counts.failed += unproven.length;
    if (unproven.length > 0) process.exitCode = 1;
    const flaky = flakyTests(modules);
    // The default reporter writes its summary after this hook; the last thing before the exit comes after that.
    process.once("exit", () => {
      for (const test of flaky) process.stdout.write(`Failed at first, passed when run again: ${test}\n`);
      for (const id of unproven) process.stdout.write(`No test of requirement ${id} ran, and none printed why.\n`);
      process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
    });
  }
}
