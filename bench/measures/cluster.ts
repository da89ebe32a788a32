/** What the hop from node to node costs: a call at one node alone, at the node that runs the server, and at another one. */
import { ownerOf } from "../../test/cluster/rig/owner.ts";
import { missingForCluster, type Rig, startRig } from "../../test/cluster/rig/rig.ts";
import { ECHO_STDIO, type Running, type Subject } from "../subjects/subject.ts";
import { callFigures, PATTERNS } from "./calls.ts";
import type { Figures } from "./figures.ts";
import { type Durations, underLoad } from "./sustained.ts";

type Place = "alone" | "owner" | "other";

const SUBJECTS: readonly Subject[] = [
  nodeSubject("one node, alone", "alone"),
  nodeSubject("at the node of the server", "owner"),
  nodeSubject("at another node", "other"),
];

export async function measureCluster(durations: Durations, say: (line: string) => void): Promise<Figures[]> {
  const missing = missingForCluster();
  if (missing !== undefined) return callFigures(SUBJECTS, "cluster", new Map(), { cluster: missing });
  const load = { upstream: "stdio", servers: 1, tools: 1 } as const;
  const { phases, failures } = await underLoad({
    subjects: SUBJECTS,
    load,
    patterns: PATTERNS,
    durations,
    say,
  });
  return callFigures(SUBJECTS, "cluster", phases, failures);
}

function nodeSubject(name: string, place: Place): Subject {
  return {
    name,
    kind: "toolcrib",
    can: () => true,
    async start(): Promise<Running> {
      const rig = await startRig({
        nodes: place === "alone" ? 1 : 2,
        ...(place === "alone" ? { cluster: false } : { links: false }),
        servers: (dir) => ({ pipe: { command: process.execPath, args: [ECHO_STDIO, `--name=${dir}`] } }),
      });
      await rig.whenReady();
      const node = place === "alone" ? rig.node(0) : nodeAt(rig, place);
      return {
        endpoint: { kind: "streamable", url: `${node.url}/mcp` },
        process: undefined,
        // A call costs both nodes something, wherever it arrives.
        companions: () => rig.nodes.map(({ pid }) => pid),
        stop: async () => void (await rig.stop()),
      };
    },
  };
}

function nodeAt(rig: Rig, place: Place): Rig["nodes"][number] {
  const owner = ownerOf(rig, `--name=${rig.dir}`).node;
  return place === "owner" ? owner : (rig.nodes.find((node) => node !== owner) ?? owner);
}
