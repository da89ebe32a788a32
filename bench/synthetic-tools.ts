/** Tools as a large hub would have them: many services, each with verbs on its own nouns, prose and parameters. */
import type { ToolCapability } from "../src/model/capability.ts";
import type { JsonObject } from "../src/model/json.ts";

interface ServiceKind {
  readonly names: readonly string[];
  readonly about: string;
  readonly nouns: readonly string[];
}

const SERVICES: readonly ServiceKind[] = [
  {
    names: ["github", "gitlab", "bitbucket", "gitea"],
    about: "the code hosting service",
    nouns: [
      "repository",
      "pull_request",
      "issue",
      "branch",
      "commit",
      "release",
      "workflow_run",
      "review_comment",
      "label",
      "webhook",
      "gist",
      "tag",
    ],
  },
  {
    names: ["slack", "teams", "discord", "mattermost"],
    about: "the team chat",
    nouns: [
      "message",
      "channel",
      "thread",
      "reaction",
      "user_profile",
      "user_group",
      "reminder",
      "bookmark",
      "emoji",
      "file_upload",
    ],
  },
  {
    names: ["postgres", "mysql", "snowflake", "bigquery"],
    about: "the database",
    nouns: ["table", "row", "schema", "query", "index", "view", "migration", "transaction", "role", "backup", "column"],
  },
  {
    names: ["stripe", "paypal", "quickbooks", "xero"],
    about: "the payment and accounting platform",
    nouns: [
      "invoice",
      "customer",
      "payment_intent",
      "refund",
      "subscription",
      "payout",
      "dispute",
      "price",
      "product",
      "tax_rate",
      "ledger_entry",
    ],
  },
  {
    names: ["jira", "linear", "asana", "trello"],
    about: "the project tracker",
    nouns: [
      "ticket",
      "sprint",
      "board",
      "epic",
      "project",
      "milestone",
      "comment",
      "assignee",
      "workflow_state",
      "attachment",
      "time_entry",
    ],
  },
  {
    names: ["aws", "gcp", "azure", "hetzner"],
    about: "the cloud account",
    nouns: [
      "instance",
      "bucket",
      "load_balancer",
      "security_group",
      "dns_record",
      "snapshot",
      "volume",
      "function",
      "queue",
      "secret_value",
      "cost_report",
    ],
  },
  {
    names: ["gmail", "outlook", "calendar", "contacts"],
    about: "the mailbox and calendar",
    nouns: [
      "email",
      "draft",
      "folder",
      "event",
      "attendee",
      "contact",
      "filter_rule",
      "availability",
      "meeting_room",
      "signature",
    ],
  },
  {
    names: ["notion", "confluence", "drive", "dropbox"],
    about: "the document store",
    nouns: [
      "page",
      "document",
      "folder",
      "spreadsheet",
      "comment",
      "permission",
      "template",
      "revision",
      "shared_link",
      "database_entry",
    ],
  },
  {
    names: ["datadog", "grafana", "sentry", "pagerduty"],
    about: "the monitoring system",
    nouns: [
      "dashboard",
      "alert",
      "monitor",
      "incident",
      "metric",
      "log_line",
      "trace",
      "on_call_schedule",
      "error_event",
      "silence",
    ],
  },
  {
    names: ["salesforce", "hubspot", "zendesk", "intercom"],
    about: "the customer relations system",
    nouns: [
      "lead",
      "opportunity",
      "account",
      "case",
      "deal",
      "campaign",
      "support_ticket",
      "macro",
      "pipeline",
      "conversation",
    ],
  },
];

interface Verb {
  readonly word: string;
  readonly sentence: (noun: string) => string;
  readonly parameters: readonly (readonly [name: string, type: string, description: string])[];
}

const VERBS: readonly Verb[] = [
  {
    word: "create",
    sentence: (noun) => `Create a new ${noun}`,
    parameters: [
      ["title", "string", "Title shown to people"],
      ["body", "string", "Text in Markdown"],
    ],
  },
  {
    word: "get",
    sentence: (noun) => `Get one ${noun} by its id, with all of its fields`,
    parameters: [["id", "string", "Identifier as returned by a list call"]],
  },
  {
    word: "list",
    sentence: (noun) => `List every ${noun} that the account can see, newest first`,
    parameters: [
      ["limit", "integer", "How many to return at most"],
      ["cursor", "string", "Where the last page ended"],
    ],
  },
  {
    word: "search",
    sentence: (noun) => `Search for a ${noun} by full text and filters`,
    parameters: [
      ["query", "string", "Words to look for"],
      ["sort", "string", "Field to order by"],
    ],
  },
  {
    word: "update",
    sentence: (noun) => `Update the given fields of a ${noun} and leave the rest as it is`,
    parameters: [
      ["id", "string", "Identifier of what is changed"],
      ["fields", "object", "New values by field name"],
    ],
  },
  {
    word: "delete",
    sentence: (noun) => `Delete a ${noun} for good. This cannot be undone`,
    parameters: [
      ["id", "string", "Identifier of what is deleted"],
      ["force", "boolean", "Skip the confirmation"],
    ],
  },
  {
    word: "archive",
    sentence: (noun) => `Archive a ${noun} so that it no longer shows up in lists`,
    parameters: [
      ["id", "string", "Identifier"],
      ["reason", "string", "Why it is put away"],
    ],
  },
  {
    word: "export",
    sentence: (noun) => `Export a ${noun} as JSON, CSV or PDF`,
    parameters: [
      ["id", "string", "Identifier"],
      ["format", "string", "One of json, csv, pdf"],
    ],
  },
  {
    word: "copy",
    sentence: (noun) => `Make a copy of a ${noun} under a new name`,
    parameters: [
      ["source_id", "string", "What is copied"],
      ["new_name", "string", "Name of the copy"],
    ],
  },
  {
    word: "watch",
    sentence: (noun) => `Subscribe to changes of a ${noun} and get a notification for each`,
    parameters: [
      ["id", "string", "Identifier"],
      ["callback_url", "string", "Address that is told of changes"],
    ],
  },
  {
    word: "share",
    sentence: (noun) => `Share a ${noun} with other people and choose what they may do`,
    parameters: [
      ["id", "string", "Identifier"],
      ["emails", "array", "Whom to share it with"],
    ],
  },
  {
    word: "move",
    sentence: (noun) => `Move a ${noun} to another place`,
    parameters: [
      ["id", "string", "Identifier"],
      ["destination", "string", "Where it goes"],
    ],
  },
];

const NOTES = [
  "Needs the read scope of the token.",
  "Rate limits of the service apply; retry after the time that the error names.",
  "Returns the object as JSON. Empty fields are left out.",
  "Use the list tool first to find the identifier.",
  "Prefer this over a raw query when only a few fields are needed.",
  "Dates are ISO 8601 in UTC unless a time zone is given.",
];

const EXTRA_PARAMETERS = [
  ["workspace", "string", "Workspace or organization that is meant"],
  ["include_archived", "boolean", "Also what was put away"],
  ["since", "string", "Only what changed after this date"],
  ["dry_run", "boolean", "Say what would happen and do nothing"],
  ["tags", "array", "Labels that must all be there"],
  ["locale", "string", "Language of texts in the answer"],
] as const;

/** The same `count` tools every time. */
export function syntheticTools(count: number): ToolCapability[] {
  const tools: ToolCapability[] = [];
  const random = numbers(20_260_728);
  const pick = <T>(list: readonly T[]): T => list[random() % list.length] as T; // lists above are not empty
  for (let round = 0; tools.length < count; round += 1) {
    for (const service of SERVICES) {
      for (const name of service.names) {
        const server = round === 0 ? name : `${name}-${round + 1}`;
        for (const noun of service.nouns) {
          for (const verb of VERBS) {
            if (tools.length === count) return tools;
            const spoken = noun.replaceAll("_", " ");
            const parameters = [...verb.parameters, pick(EXTRA_PARAMETERS), pick(EXTRA_PARAMETERS)];
            const own = `${verb.word}_${noun}`;
            const description = `${verb.sentence(spoken)} in ${name}, ${service.about}. ${pick(NOTES)} ${pick(NOTES)}`;
            tools.push(capability(server, own, description, parameters));
          }
        }
      }
    }
  }
  return tools;
}

function capability(
  server: string,
  name: string,
  description: string,
  parameters: readonly (readonly [string, string, string])[],
): ToolCapability {
  const properties: JsonObject = Object.fromEntries(
    parameters.map(([key, type, text]) => [key, { type, description: text }]),
  );
  const required = parameters.slice(0, 1).map(([key]) => key);
  return {
    kind: "tool",
    name: `${server}__${name}`,
    origin: { source: server, name },
    definition: { name, description, inputSchema: { type: "object", properties, required } },
    fingerprint: `${server}/${name}`,
  };
}

/** A linear congruential generator: a bench must see the same tools in every run. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
}
