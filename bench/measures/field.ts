/** The subjects of one measure, all running at once and measured in turns. */
import { type Load, type Ready, type Running, type Subject, whenComplete } from "../subjects/subject.ts";
import { directHttp } from "../subjects/floor.ts";

export interface Entrant extends Ready {
  readonly subject: Subject;
  readonly running: Running;
}

export interface Field {
  readonly entrants: readonly Entrant[];
  /** Why a subject is not there, by its name. */
  readonly failures: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** One HTTP echo server for each server of the load; all subjects share them. */
export async function startUpstreams(load: Load): Promise<{ readonly urls: readonly string[]; stop(): Promise<void> }> {
  if (load.upstream !== "http") return { urls: [], stop: async () => {} };
  const servers = await Promise.all(Array.from({ length: load.servers }, () => directHttp.start(load, [])));
  for (const server of servers) await (await whenComplete(server, { ...load, servers: 1 })).client.close();
  return {
    urls: servers.map(({ endpoint }) => ("url" in endpoint ? endpoint.url : "")),
    stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  };
}

export async function openField(subjects: readonly Subject[], load: Load): Promise<Field> {
  const upstreams = await startUpstreams(load);
  const entrants: Entrant[] = [];
  const failures: Record<string, string> = {};
  for (const subject of subjects.filter((one) => one.can(load))) {
    const running = await subject.start(load, upstreams.urls);
    try {
      entrants.push({ subject, running, ...(await whenComplete(running, load)) });
    } catch (error) {
      failures[subject.name] = error instanceof Error ? error.message : String(error);
      await running.stop();
    }
  }
  return {
    entrants,
    failures,
    async close() {
      for (const { client, running } of entrants) {
        await client.close().catch(() => {});
        await running.stop();
      }
      await upstreams.stop();
    },
  };
}

export interface Rounds {
  readonly rounds: number;
  readonly warmup: number;
}

/**
 * Runs a short burst with every entrant, again and again, each round in another order: whatever slows the machine down
 * for longer than a round slows all of them down alike.
 * @returns By name of the subject one sample for each round. Who fails once is out.
 */
export async function inRounds<Sample>(
  field: Field,
  { rounds, warmup }: Rounds,
  burst: (entrant: Entrant) => Promise<Sample>,
): Promise<{ readonly samples: Map<string, Sample[]>; readonly failures: Readonly<Record<string, string>> }> {
  const samples = new Map<string, Sample[]>(field.entrants.map(({ subject }) => [subject.name, []]));
  const failures: Record<string, string> = { ...field.failures };
  for (let round = -warmup; round < rounds; round += 1) {
    const turn = (round + warmup) % Math.max(1, field.entrants.length);
    for (const entrant of [...field.entrants.slice(turn), ...field.entrants.slice(0, turn)]) {
      const { name } = entrant.subject;
      if (failures[name] !== undefined) continue;
      try {
        const sample = await burst(entrant);
        if (round >= 0) samples.get(name)?.push(sample);
      } catch (error) {
        failures[name] = error instanceof Error ? error.message : String(error);
        samples.delete(name);
      }
    }
  }
  return { samples, failures };
}
