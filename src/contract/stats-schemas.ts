/** Figures of calls over time, processes and logs of servers, and the cost of definitions, as the HTTP contract shows them. */
import { z } from "zod";
import { RANGE_NAMES } from "./stats-ranges.ts";

const Counts = {
  calls: z.int().describe("All that ended, whatever their outcome."),
  failed: z.int().describe("Ended with an error of the tool, its server, the arguments or the hub."),
  refused: z.int().describe("Denied by a rule, blocked by the guard, over a limit or not authorized."),
  waiting: z.int().describe("Held for approval: neither refused nor failed."),
  cancelled: z.int().describe("Given up by the caller."),
};

const Percentiles = {
  p50: z
    .number()
    .nullable()
    .describe("Milliseconds of calls that ran, without time for approval; a tenth off at most. Null if none ran."),
  p95: z.number().nullable(),
  p99: z.number().nullable(),
};

const PointSchema = z
  .object({ at: z.string().describe("Beginning of the step."), ...Counts, ...Percentiles })
  .meta({ id: "StatsPoint" });

const SomeCall = z.object({ at: z.string(), callId: z.string() });

const FiguresSchema = z
  .object({
    ...Counts,
    ...Percentiles,
    resultBytes: z.number().nullable().describe("Half of the results are at most about this large."),
    slowest: z.object({ ms: z.number(), callId: z.string() }).nullable(),
    last: SomeCall.nullable().describe("The last call."),
  })
  .meta({ id: "StatsFigures" });

const GroupSchema = FiguresSchema.extend({
  server: z.string().optional(),
  tool: z.string().optional().describe("Public name."),
  client: z.string().optional().describe("Name of the program that called; empty if it gave none."),
  role: z.string().optional().describe("Empty for callers without one."),
  series: z.array(z.int()).describe("Calls in each step, the newest last."),
}).meta({ id: "StatsGroup" });

const ProblemSchema = z.object({
  name: z.string().describe("Public name."),
  server: z.string().describe("Empty if the call reached none."),
  code: z.string().describe("Outcome of the calls, or code of the finding."),
  count: z.int(),
  last: SomeCall,
});

export const StatsSchema = z
  .object({
    range: z.enum(RANGE_NAMES),
    since: z.string(),
    stepSeconds: z.int(),
    total: FiguresSchema,
    points: z.array(PointSchema).describe("One for each step, the newest last."),
    servers: z.array(GroupSchema).describe("Each list has those with the most calls first, at most 50."),
    tools: z.array(GroupSchema),
    clients: z.array(GroupSchema).describe("With `tool`: who called it in the last 30 days, whatever the range."),
    roles: z.array(GroupSchema),
    slowest: z.array(GroupSchema).describe("Tools by `p95`, the slowest first, at most 10."),
    failures: z.array(ProblemSchema).describe("What failed or was refused and why, the most frequent first."),
    findings: z.array(ProblemSchema).describe("What the guard found in results."),
  })
  .meta({ id: "Stats" });

export const StatsInput = z.strictObject({
  range: z.enum(RANGE_NAMES).default("24h"),
  server: z.string().max(512).optional().describe("Only calls to this server. At most one of the four."),
  tool: z.string().max(512).optional().describe("Only calls of this tool, by its public name."),
  client: z.string().max(512).optional().describe("Only calls of this program; lists are left out."),
  role: z.string().max(512).optional().describe("Only calls with this role; lists are left out."),
});

export type Stats = z.output<typeof StatsSchema>;
export type StatsFigures = z.output<typeof FiguresSchema>;
export type StatsGroup = z.output<typeof GroupSchema>;
export type StatsProblem = z.output<typeof ProblemSchema>;

export const ServerProcessSchema = z
  .object({
    serverId: z.string(),
    connectedAt: z.string().nullable(),
    restarts: z.int().describe("Since the hub started."),
    process: z
      .object({
        processes: z.int().describe("Its program and everything that it started."),
        memoryBytes: z.number().describe("Resident; what processes share is counted for each."),
        cpuPercent: z.number().describe("Over a quarter of a second; 100 is one core."),
        startedAt: z.string(),
      })
      .nullable()
      .describe("Null for a remote server, one that does not run here, and where the system is not Linux."),
  })
  .meta({ id: "ServerProcess" });

export const LOG_LEVELS = ["debug", "info", "warning", "error"] as const;

const LogLineSchema = z
  .object({
    seq: z.int(),
    at: z.string().describe("When it came."),
    source: z.enum(["stderr", "log"]).describe("`log`: a log message of the protocol."),
    level: z.enum(LOG_LEVELS).nullable().describe("Of stderr: as far as a word at the beginning of the line says so."),
    text: z.string().describe("Masked."),
  })
  .meta({ id: "LogLine" });

export const ServerLogSchema = z.object({
  serverId: z.string(),
  lines: z.array(LogLineSchema).describe("The oldest first."),
  last: z.int().describe("`after` of the next request."),
});

const Cost = z.object({ tools: z.int(), tokens: z.int() });

export const TokenCostsSchema = z
  .object({
    charactersPerToken: z.number().describe("The figures are estimates: models count in ways of their own."),
    catalog: Cost.describe("All tools of the hub."),
    search: Cost.describe("The search tools alone. What a model looks up through them comes on top."),
    clients: z
      .array(
        z.object({
          client: z.string().describe("Name of the program, else of its door."),
          role: z.string().nullable(),
          sessions: z.int(),
          isSearch: z.boolean().describe("It is offered search tools and a part of the rest, by `tools.max`."),
          offered: Cost,
          whole: Cost.describe("All tools that it may use."),
          search: Cost.describe("If it were offered the search tools alone."),
        }),
      )
      .describe("Of open sessions; those that are offered the same are one."),
    tools: z
      .array(z.object({ name: z.string(), server: z.string(), tokens: z.int() }))
      .describe("The most expensive first, at most 1000."),
  })
  .meta({ id: "TokenCosts" });
