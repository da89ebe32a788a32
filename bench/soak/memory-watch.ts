/** Whether memory grows: samples of resident memory, and the line through them after a warm-up. */
import { memoryOf } from "../processes.ts";

export interface Growth {
  readonly firstMb: number;
  readonly lastMb: number;
  readonly mbPerMinute: number;
  /** By that line, over the time that was looked at. */
  readonly grownMb: number;
}

interface Sample {
  readonly minutes: number;
  readonly mb: number;
}

const EVERY_MS = 250;

export class MemoryWatch {
  readonly #samples: Sample[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    const start = performance.now();
    this.#timer = setInterval(() => {
      this.#samples.push({ minutes: (performance.now() - start) / 60_000, mb: memoryOf(pid).rssMb });
    }, EVERY_MS);
  }

  stop(): Growth {
    clearInterval(this.#timer);
    return growthOf(this.#samples);
  }
}

/** Of the samples after the first half: until then a process fills its caches and its heap finds its size. */
export function growthOf(samples: readonly Sample[]): Growth {
  const settled = samples.slice(Math.floor(samples.length / 2));
  const [first, last] = [settled[0], settled.at(-1)];
  if (first === undefined || last === undefined) return { firstMb: 0, lastMb: 0, mbPerMinute: 0, grownMb: 0 };
  const mean = (pick: (sample: Sample) => number): number =>
    settled.reduce((sum, sample) => sum + pick(sample), 0) / settled.length;
  const [middle, level] = [mean(({ minutes }) => minutes), mean(({ mb }) => mb)];
  const spread = mean(({ minutes }) => (minutes - middle) ** 2);
  const mbPerMinute = spread === 0 ? 0 : mean(({ minutes, mb }) => (minutes - middle) * (mb - level)) / spread;
  return { firstMb: first.mb, lastMb: last.mb, mbPerMinute, grownMb: mbPerMinute * (last.minutes - first.minutes) };
}
