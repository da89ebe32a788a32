/** What a search over a large catalog costs, in direct HTTP calls: a search that costs more than a call saves nothing. */
import { ToolIndex } from "../src/catalog/search/tool-index.ts";
import { type Report, rowOf, timeInTurns } from "./bench.ts";
import { directHttp } from "./direct-http.ts";
import { syntheticTools } from "./synthetic-tools.ts";

const QUERIES = [
  "create pull request",
  "send a message to a channel",
  "refund a payment",
  "list open issues in a repository",
  "delete dns record in the cloud",
  "search emails",
  "export invoice as pdf",
  "who is on call this week",
  "update the assignee of a ticket",
  "share document with other people",
  "get metric",
  "move folder to another place",
  "archive customer conversation",
  "watch for new error events",
  "gihtub pul requests",
  "stripe__create_refund",
];

const PROMPT =
  "Please look through the open support tickets of this week, find the three customers who complained about failed " +
  "payments, check their invoices and refunds, write a short summary into a new document, share it with the finance team, " +
  "and post a message with the link to the channel of the on-call engineers so that somebody can look at the alerts.";

export interface SearchBenchOptions {
  readonly tools: number;
  readonly rounds: number;
}

export async function measureSearch({ tools: count, rounds }: SearchBenchOptions): Promise<Report> {
  const tools = syntheticTools(count);
  const index = new ToolIndex(tools);
  const http = await directHttp();
  let turn = 0;
  try {
    const quick = await timeInTurns(
      {
        http: () => http.call(),
        query: () => index.search(QUERIES[turn++ % QUERIES.length] ?? "", 10),
        prompt: () => index.search(PROMPT, 100),
      },
      { rounds, warmup: Math.ceil(rounds / 4) },
    );
    const builds = await timeInTurns({ build: () => new ToolIndex(tools) }, { rounds: 10, warmup: 2 });
    return {
      title: `Search over ${count} tools`,
      baseline: "one direct HTTP call",
      rows: [
        rowOf("one direct HTTP call", quick.http, quick.http),
        rowOf("one query, 10 results", quick.query, quick.http),
        rowOf("a prompt of 60 words, 100 results", quick.prompt, quick.http),
        rowOf("building the index", builds.build, quick.http),
      ],
    };
  } finally {
    await http.close();
  }
}

/** By how long it may take. */
export const SEARCH_SIZE = {
  full: { tools: 5000, rounds: 2000 },
  quick: { tools: 5000, rounds: 500 },
  smoke: { tools: 200, rounds: 10 },
} as const satisfies Readonly<Record<string, SearchBenchOptions>>;
