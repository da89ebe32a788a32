import { expect, it } from "vitest";
import { type Durations, underLoad } from "../../bench/measures/sustained.ts";
import { PATTERNS } from "../../bench/measures/calls.ts";
import { freePort, startNode } from "../../bench/processes.ts";
import { ECHO_HTTP, type Subject } from "../../bench/subjects/subject.ts";

const DURATIONS: Durations = { seconds: 0.3, bareSeconds: 0.1, warmupSeconds: 0, quietMs: 100 };

/** The bare server with something on top that runs in its process. */
function subject(name: string, extra: string): Subject {
  return {
    name,
    kind: "other",
    can: () => true,
    async start({ probe }) {
      const port = await freePort();
      const script = `data:text/javascript,${encodeURIComponent(extra)}`;
      const started = startNode(["--import", script, ECHO_HTTP, `--port=${port}`], { probe });
      return {
        endpoint: { kind: "streamable", url: `http://127.0.0.1:${port}/mcp` },
        process: started,
        probe,
        stop: () => started.stop(),
      };
    },
  };
}

const BURN = "const burn = (ms) => { for (const end = performance.now() + ms; performance.now() < end;); };";
const AFTER_LOAD = `
  ${BURN}
  const { channel } = await import("node:diagnostics_channel");
  let timer;
  channel("http.server.request.start").subscribe(() => {
    clearTimeout(timer);
    timer = setTimeout(() => { let left = 20; const step = () => { burn(50); if (--left > 0) setTimeout(step, 1); }; step(); }, 60);
  });`;

it("[speed-01a] counts work that a subject does after its last answer", { timeout: 60_000, retry: 2 }, async () => {
  const { phases, failures } = await underLoad({
    subjects: [subject("prompt", ""), subject("later", AFTER_LOAD)],
    load: { upstream: "stdio", servers: 1, tools: 1 },
    patterns: { sequential: PATTERNS.sequential },
    durations: DURATIONS,
    say: () => {},
  });
  expect(failures).toEqual({});
  const cpu = (name: string): number => phases.get(name)?.sequential.own.cpuUs ?? Number.NaN;
  expect(cpu("later") / cpu("prompt")).toBeGreaterThan(1.5);
});

it(
  "[speed-01b] tells a subject that blocks its event loop from one that does not",
  { timeout: 60_000, retry: 2 },
  async () => {
    const blocking = `
    ${BURN}
    const { channel } = await import("node:diagnostics_channel");
    let next = 0;
    channel("http.server.request.start").subscribe(() => {
      if (performance.now() < next) return;
      burn(400);
      next = performance.now() + 50;
    });`;
    const { phases, failures } = await underLoad({
      subjects: [subject("free", ""), subject("blocking", blocking)],
      load: { upstream: "stdio", servers: 1, tools: 1 },
      patterns: { atOnce: PATTERNS.atOnce },
      // Several blocks: the first after a reset is where the clock begins.
      durations: { ...DURATIONS, seconds: 2 },
      say: () => {},
    });
    expect(failures).toEqual({});
    const of = (name: string) => phases.get(name)?.atOnce;
    expect(of("blocking")?.own.loop?.p99Ms).toBeGreaterThan(1.5 * (of("free")?.own.loop?.p99Ms ?? Number.NaN));
    for (const { own, bare } of [...phases.values()].map(({ atOnce }) => atOnce)) {
      for (const { p50Us, p99Us, perSecond } of [own, bare]) {
        expect(p99Us).toBeGreaterThanOrEqual(p50Us);
        expect(perSecond).toBeGreaterThan(0);
      }
    }
  },
);
