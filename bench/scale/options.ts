/** What `npm run bench:scale` is told on the command line. */
import { parseArgs } from "node:util";

export const MEASURES = ["nodes", "failover", "sessions", "processes", "catalog"] as const;
export type Measure = (typeof MEASURES)[number];

/** `smoke` shows that everything runs, with sizes that mean nothing. */
export type Extent = "full" | "smoke";

export interface ScaleOptions {
  readonly measures: readonly Measure[];
  readonly extent: Extent;
  /** Document that gets the tables, between two marks. */
  readonly docs?: string;
  /** Folder of the JSON file. */
  readonly out: string;
}

const USAGE = `npm run bench:scale -- [options]

  --smoke          seconds: only shows that everything runs
  --only <list>    measures: ${MEASURES.join(", ")}
  --docs <file>    puts the tables into a document (docs/scale.md)
  --out <folder>   where the JSON goes (bench/results)`;

export function parseOptions(args: readonly string[], defaultOut: string): ScaleOptions | { readonly problem: string } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        smoke: { type: "boolean" },
        only: { type: "string", multiple: true },
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
      measures: asked.length === 0 ? MEASURES : MEASURES.filter((measure) => asked.includes(measure)),
      extent: values.smoke === true ? "smoke" : "full",
      docs: values.docs,
      out: values.out,
    };
  } catch (error) {
    return { problem: `${error instanceof Error ? error.message : String(error)}\n\n${USAGE}` };
  }
}
