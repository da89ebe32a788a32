/** What `npm run bench` is told on the command line. */
import { parseArgs } from "node:util";

export const MEASURES = ["calls", "list", "large", "start", "memory", "scale", "cluster"] as const;
export type Measure = (typeof MEASURES)[number];

/** How long it may take: `full` for numbers that are published, `quick` for a look, `smoke` to see that it works. */
export type Extent = "full" | "quick" | "smoke";

export interface BenchOptions {
  /** Which benches; all if empty. */
  readonly benches: readonly string[];
  readonly measures: readonly Measure[];
  readonly extent: Extent;
  readonly peers: boolean;
  /** `cli/main.cjs` of another build of Toolcrib to measure beside this one. */
  readonly versus?: string;
  /** Document that gets the outcome of the gateway bench, between two marks. */
  readonly docs?: string;
  /** Folder of the JSON files. */
  readonly out: string;
}

export const USAGE = `npm run bench -- [bench …] [options]

benches: gateway (calls through Toolcrib, a bare relay and peers), hub (five clients, ten servers), search, skills (CPU of reading one), rules (CPU of a decision)
  --quick          a few minutes; the spread is larger
  --smoke          seconds: only shows that everything runs
  --only <list>    measures of the gateway bench: ${MEASURES.join(", ")}
  --no-peers       installs and measures no peers
  --versus <file>  measures another build too, by its cli/main.cjs
  --docs <file>    puts the outcome into a document (docs/performance.md)
  --out <folder>   where the JSON goes (bench/results)`;

export function parseOptions(args: readonly string[], defaultOut: string): BenchOptions | { readonly problem: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      allowNegative: true,
      options: {
        quick: { type: "boolean" },
        smoke: { type: "boolean" },
        only: { type: "string", multiple: true },
        peers: { type: "boolean", default: true },
        versus: { type: "string" },
        docs: { type: "string" },
        out: { type: "string", default: defaultOut },
        help: { type: "boolean" },
      },
    });
    if (values.help === true) return { problem: USAGE };
    const asked = (values.only ?? []).flatMap((list) => list.split(","));
    const unknown = asked.filter((name) => !MEASURES.some((measure) => measure === name));
    if (unknown.length > 0) return { problem: `There is no measure "${unknown.join('", "')}".\n\n${USAGE}` };
    return {
      benches: positionals,
      measures: asked.length === 0 ? MEASURES : MEASURES.filter((measure) => asked.includes(measure)),
      extent: values.smoke === true ? "smoke" : values.quick === true ? "quick" : "full",
      peers: values.peers,
      ...(values.versus === undefined ? {} : { versus: values.versus }),
      ...(values.docs === undefined ? {} : { docs: values.docs }),
      out: values.out,
    };
  } catch (error) {
    return { problem: `${error instanceof Error ? error.message : String(error)}\n\n${USAGE}` };
  }
}
