/** How long it takes from the start of the process until every tool of every server is listed, and what it holds then. */
import { setTimeout as sleep } from "node:timers/promises";
import { memoryOf } from "../processes.ts";
import { directHttp } from "../subjects/floor.ts";
import { gatewayPids, type Load, type Subject, whenComplete } from "../subjects/subject.ts";
import { type Figures, figuresOf, type Sampled } from "./figures.ts";

export async function measureStart(subjects: readonly Subject[], servers: number, rounds: number): Promise<Figures[]> {
  const load: Load = { upstream: "stdio", servers, tools: 1 };
  const samples = new Map<string, number[]>();
  const failures: Record<string, string> = {};
  for (let round = 0; round < rounds; round += 1) {
    // One at a time: two that start at once would share the processors.
    for (const subject of subjects.filter((one) => one.can(load))) {
      if (failures[subject.name] !== undefined) continue;
      const start = performance.now();
      const running = await subject.start(load, []);
      try {
        const { client } = await whenComplete(running, load);
        samples.set(subject.name, [...(samples.get(subject.name) ?? []), performance.now() - start]);
        await client.close();
      } catch (error) {
        failures[subject.name] = error instanceof Error ? error.message : String(error);
        samples.delete(subject.name);
      }
      await running.stop();
    }
  }
  const floor = servers === 1 ? samples.get(directHttp.name) : undefined;
  const title = `From spawn to a complete list, ${servers} stdio ${servers === 1 ? "server" : "servers"}`;
  return [
    figuresOf({
      measure: `start-${servers}`,
      title,
      unit: "ms",
      better: "lower",
      ...(floor && { floor: directHttp.name }),
      subjects,
      samples: new Map([...samples].map(([name, values]) => [name, { values, ...(floor && { floor }) }])),
      failures,
    }),
  ];
}

/** All of them are started before the first is idle for long enough: memory is not what they would compete for. */
export async function measureMemory(
  subjects: readonly Subject[],
  servers: number,
  { startedMs, idleMs }: { readonly startedMs: number; readonly idleMs: number },
): Promise<Figures[]> {
  await using closing = new AsyncDisposableStack();
  const started = new Map<string, Sampled>();
  const rss = new Map<string, Sampled>();
  const anon = new Map<string, Sampled>();
  const failures: Record<string, string> = {};
  const idle: (() => void)[] = [];
  for (const subject of subjects) {
    // Who fronts one server only is shown with one, which flatters it.
    const load = [servers, 1].map((count): Load => ({ upstream: "stdio", servers: count, tools: 1 })).find(subject.can);
    if (load === undefined) continue;
    const running = closing.adopt(await subject.start(load, []), (each) => each.stop());
    const keep = (samples: Map<string, Sampled>, of: (memory: ReturnType<typeof memoryOf>) => number): void => {
      const each = gatewayPids(running).map(memoryOf);
      if (each.length > 0) samples.set(subject.name, { values: [each.reduce((sum, one) => sum + of(one), 0)] });
    };
    try {
      const { client } = await whenComplete(running, load);
      closing.defer(() => client.close());
      await sleep(startedMs);
      keep(started, ({ rssMb }) => rssMb);
      idle.push(() => {
        keep(rss, ({ rssMb }) => rssMb);
        keep(anon, ({ anonMb }) => anonMb);
      });
    } catch (error) {
      failures[subject.name] = error instanceof Error ? error.message : String(error);
    }
  }
  await sleep(idleMs - startedMs);
  for (const measure of idle) measure();
  const common = { unit: "MB", better: "lower", subjects, failures } as const;
  const title = `${servers} stdio servers (direct, relay, mcp-proxy and supergateway: with 1)`;
  const soon = `Started with ${title}, ${startedMs / 1000} s ago`;
  return [
    figuresOf({ ...common, measure: "memory-started", title: `${soon}: resident memory`, samples: started }),
    figuresOf({ ...common, measure: "memory", title: `Idle with ${title}: resident memory`, samples: rss }),
    figuresOf({ ...common, measure: "memory-anon", title: `Idle with ${title}: without mapped files`, samples: anon }),
  ];
}
