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

export async function measureMemory(subjects: readonly Subject[], servers: number, idleMs: number): Promise<Figures[]> {
  const rss = new Map<string, Sampled>();
  const anon = new Map<string, Sampled>();
  const failures: Record<string, string> = {};
  for (const subject of subjects) {
    // Who fronts one server only is shown with one, which flatters it.
    const load = [servers, 1].map((count): Load => ({ upstream: "stdio", servers: count, tools: 1 })).find(subject.can);
    if (load === undefined) continue;
    const running = await subject.start(load, []);
    try {
      const { client } = await whenComplete(running, load);
      await sleep(idleMs);
      const each = gatewayPids(running).map(memoryOf);
      if (each.length > 0) {
        rss.set(subject.name, { values: [each.reduce((sum, { rssMb }) => sum + rssMb, 0)] });
        anon.set(subject.name, { values: [each.reduce((sum, { anonMb }) => sum + anonMb, 0)] });
      }
      await client.close();
    } catch (error) {
      failures[subject.name] = error instanceof Error ? error.message : String(error);
    }
    await running.stop();
  }
  const common = { unit: "MB", better: "lower", subjects, failures } as const;
  const title = `Idle with ${servers} stdio servers (direct, relay, mcp-proxy and supergateway: with 1)`;
  return [
    figuresOf({ ...common, measure: "memory", title: `${title}: resident memory`, samples: rss }),
    figuresOf({ ...common, measure: "memory-anon", title: `${title}: without mapped files`, samples: anon }),
  ];
}
