/**
 * Which sessions of a node still live, asked by those that keep processes for them: news of an end may get lost. It is asked
 * and not told, because an answer cannot be overtaken by a session that has just begun.
 */
import type { Cluster } from "../../cluster/cluster.ts";
import { readBody, writeBody } from "./messages.ts";

interface Question {
  /** Of the server. */
  readonly word: string;
  readonly ids: readonly string[];
}

/** Whether a session lives, and the server keeps something of it. */
type Knows = (sessionId: string) => boolean;

export class SessionRoll {
  readonly #known = new Map<string, Set<Knows>>();
  readonly #stop: () => void;

  constructor(cluster: Cluster) {
    this.#stop = cluster.serve(rollAddress(cluster.node.id), async ({ body }) => {
      const { word, ids } = readBody<Question>(body);
      const known = [...(this.#known.get(word) ?? [])];
      const ended = ids.filter((id) => !known.some((knows) => knows(id)));
      return { head: { ok: true }, body: writeBody(ended) };
    });
  }

  /** The returned function takes it out. */
  add(word: string, knows: Knows): () => void {
    const all = this.#known.get(word) ?? new Set();
    this.#known.set(word, all.add(knows));
    return () => {
      all.delete(knows);
      if (all.size === 0 && this.#known.get(word) === all) this.#known.delete(word);
    };
  }

  close(): void {
    this.#stop();
  }
}

/** Those that have ended; none where the node does not answer. */
export async function endedSessions(cluster: Cluster, node: string, question: Question): Promise<string[]> {
  const asked = cluster.call(rollAddress(node), { head: { ok: true }, body: writeBody(question) });
  return asked.then(
    ({ body }) => readBody<string[]>(body),
    () => [],
  );
}

function rollAddress(node: string): string {
  return `node.${node}.sessions`;
}
