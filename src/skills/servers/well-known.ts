/**
 * Servers that skills name without saying how they are started. The names of packages, variables and options are those of
 * the servers themselves.
 */
import type { ServerParameter, ServerTemplate } from "../../model/skill.ts";
import { launchCommand, type PackageReference, parsePackage, isSamePackage } from "./package-reference.ts";

export interface WellKnownServer {
  readonly name: string;
  readonly description: string;
  readonly package?: PackageReference;
  readonly template: ServerTemplate;
  readonly parameters: readonly ServerParameter[];
}

interface Row {
  readonly description: string;
  /** Or `url`. */
  readonly package?: string;
  readonly url?: string;
  readonly args?: readonly string[];
  /** Each becomes a variable of the server's environment of the same name. */
  readonly env?: readonly ServerParameter[];
  readonly parameters?: readonly ServerParameter[];
}

const needed = (name: string, description: string, more: Partial<ServerParameter> = {}): ServerParameter => ({
  name,
  description,
  required: more.default === undefined,
  sensitive: false,
  ...more,
});
const optional = (name: string, description: string, more: Partial<ServerParameter> = {}): ServerParameter =>
  needed(name, description, { required: false, ...more });
const secret = (name: string, description: string, more: Partial<ServerParameter> = {}): ServerParameter =>
  needed(name, description, { sensitive: true, ...more });

const ROWS: Readonly<Record<string, Row>> = {
  filesystem: {
    description: "Reads and writes files below one folder.",
    package: "@modelcontextprotocol/server-filesystem",
    args: ["${ROOT}"],
    parameters: [needed("ROOT", "Folder that the server may use.", { default: "${WORKSPACE}", example: "~/notes" })],
  },
  memory: {
    description: "Keeps a graph of facts between conversations.",
    package: "@modelcontextprotocol/server-memory",
    env: [optional("MEMORY_FILE_PATH", "File of the graph; the server chooses one by default.")],
  },
  everything: {
    description: "Shows every feature of the protocol; for tests.",
    package: "@modelcontextprotocol/server-everything",
  },
  "sequential-thinking": {
    description: "Lets a model think in numbered steps that it can revise.",
    package: "@modelcontextprotocol/server-sequential-thinking",
  },
  github: {
    description: "Repositories, issues and pull requests on GitHub.",
    package: "@modelcontextprotocol/server-github",
    env: [
      secret("GITHUB_PERSONAL_ACCESS_TOKEN", "Personal access token of GitHub.", {
        example: "ghp_…",
        aliases: ["GITHUB_TOKEN"],
      }),
    ],
  },
  gitlab: {
    description: "Projects, issues and merge requests on GitLab.",
    package: "@modelcontextprotocol/server-gitlab",
    env: [
      secret("GITLAB_PERSONAL_ACCESS_TOKEN", "Personal access token of GitLab."),
      optional("GITLAB_API_URL", "API of a GitLab of your own.", { example: "https://gitlab.example.com/api/v4" }),
    ],
  },
  git: {
    description: "Status, history and changes of a local Git repository.",
    package: "pypi:mcp-server-git",
    args: ["--repository", "${REPOSITORY}"],
    parameters: [needed("REPOSITORY", "Folder of the repository.", { default: "${WORKSPACE}" })],
  },
  fetch: {
    description: "Fetches web pages and turns them into Markdown.",
    package: "pypi:mcp-server-fetch",
  },
  time: {
    description: "The time now, and in other time zones.",
    package: "pypi:mcp-server-time",
    args: ["--local-timezone=${LOCAL_TIMEZONE}"],
    parameters: [optional("LOCAL_TIMEZONE", "Time zone; the system's if absent.", { example: "Europe/Berlin" })],
  },
  sqlite: {
    description: "Queries and changes a SQLite database.",
    package: "pypi:mcp-server-sqlite",
    args: ["--db-path", "${DB_PATH}"],
    parameters: [needed("DB_PATH", "File of the database.", { example: "~/data.db" })],
  },
  postgres: {
    description: "Reads schemas and runs read-only queries in a PostgreSQL database.",
    package: "@modelcontextprotocol/server-postgres",
    args: ["${DATABASE_URL}"],
    // The address contains the password.
    parameters: [secret("DATABASE_URL", "Address of the database.", { example: "postgresql://user@localhost/mydb" })],
  },
  mysql: {
    description: "Reads schemas and runs read-only queries in a MySQL database.",
    package: "@benborla29/mcp-server-mysql",
    env: [
      needed("MYSQL_HOST", "Host of the database.", { default: "127.0.0.1" }),
      needed("MYSQL_PORT", "Its port.", { default: "3306" }),
      needed("MYSQL_USER", "Name of the user."),
      secret("MYSQL_PASS", "Password of the user.", { aliases: ["MYSQL_PASSWORD"] }),
      optional("MYSQL_DB", "The only database to use; all if absent.", { aliases: ["MYSQL_DATABASE"] }),
    ],
  },
  mongodb: {
    description: "Queries a MongoDB database.",
    package: "mongodb-mcp-server",
    env: [secret("MDB_MCP_CONNECTION_STRING", "Connection string of the database.")],
  },
  "brave-search": {
    description: "Searches the web with Brave.",
    package: "@brave/brave-search-mcp-server",
    env: [secret("BRAVE_API_KEY", "Key of the Brave Search API.")],
  },
  "google-search": {
    description: "Searches the web with Google.",
    package: "@adenot/mcp-google-search",
    env: [
      secret("GOOGLE_API_KEY", "Key of the Custom Search API."),
      needed("GOOGLE_SEARCH_ENGINE_ID", "Id of the search engine.", { aliases: ["GOOGLE_CSE_ID"] }),
    ],
  },
  "google-drive": {
    description: "Finds and reads files on Google Drive. A person logs in once with `npx … auth`.",
    package: "@modelcontextprotocol/server-gdrive",
    env: [
      needed("GDRIVE_OAUTH_PATH", "File with the OAuth keys of a Google Cloud project."),
      needed("GDRIVE_CREDENTIALS_PATH", "File that the login writes its credentials to."),
    ],
  },
  tavily: {
    description: "Searches the web and reads pages with Tavily.",
    package: "tavily-mcp",
    env: [secret("TAVILY_API_KEY", "Key of the Tavily API.")],
  },
  firecrawl: {
    description: "Reads and crawls web sites with Firecrawl.",
    package: "firecrawl-mcp",
    env: [secret("FIRECRAWL_API_KEY", "Key of the Firecrawl API.")],
  },
  puppeteer: {
    description: "Drives a Chromium browser.",
    package: "@modelcontextprotocol/server-puppeteer",
  },
  playwright: {
    description: "Drives a browser through its accessibility tree.",
    package: "@playwright/mcp",
  },
  "chrome-devtools": {
    description: "Inspects and drives Chrome through its developer tools.",
    package: "chrome-devtools-mcp",
  },
  slack: {
    description: "Reads and writes messages in a Slack workspace.",
    package: "@modelcontextprotocol/server-slack",
    env: [
      secret("SLACK_BOT_TOKEN", "Token of the bot user.", { example: "xoxb-…" }),
      needed("SLACK_TEAM_ID", "Id of the workspace.", { example: "T01234567" }),
      optional("SLACK_CHANNEL_IDS", "Only these channels, with commas.", { example: "C01234567,C76543210" }),
    ],
  },
  notion: {
    description: "Pages and databases of a Notion workspace.",
    package: "@notionhq/notion-mcp-server",
    env: [secret("NOTION_TOKEN", "Token of an internal integration.", { example: "ntn_…" })],
  },
  sentry: {
    description: "Issues, events and releases in Sentry.",
    package: "@sentry/mcp-server",
    env: [
      secret("SENTRY_ACCESS_TOKEN", "Access token of a Sentry user.", { aliases: ["SENTRY_AUTH_TOKEN"] }),
      optional("SENTRY_HOST", "Host of a Sentry of your own.", { example: "sentry.example.com" }),
    ],
  },
  "google-maps": {
    description: "Places, routes and distances of Google Maps.",
    package: "@modelcontextprotocol/server-google-maps",
    env: [secret("GOOGLE_MAPS_API_KEY", "Key of the Google Maps API.")],
  },
  context7: {
    description: "Documentation of libraries in the version that is asked for.",
    package: "@upstash/context7-mcp",
    env: [secret("CONTEXT7_API_KEY", "Key for higher limits.", { required: false })],
  },
  linear: {
    description: "Issues and projects in Linear. A person logs in once.",
    url: "https://mcp.linear.app/mcp",
  },
};

const ALIASES: Readonly<Record<string, string>> = {
  brave: "brave-search",
  bravesearch: "brave-search",
  "file-system": "filesystem",
  files: "filesystem",
  fs: "filesystem",
  gdrive: "google-drive",
  googledrive: "google-drive",
  googlemaps: "google-maps",
  googlesearch: "google-search",
  mongo: "mongodb",
  postgresql: "postgres",
  sequentialthinking: "sequential-thinking",
};

/** By the name that skills use, in any case and with `_` for `-`. */
export function wellKnownByName(name: string): WellKnownServer | undefined {
  const plain = name.toLowerCase().replaceAll(/[_ ]/g, "-");
  const key = Object.hasOwn(ALIASES, plain) ? (ALIASES[plain] ?? plain) : plain;
  const row = Object.hasOwn(ROWS, key) ? ROWS[key] : undefined;
  return row === undefined ? undefined : serverOf(key, row);
}

/** With the version that was written in place of the newest. */
export function wellKnownByPackage(reference: PackageReference): WellKnownServer | undefined {
  for (const [name, row] of Object.entries(ROWS)) {
    const own = row.package === undefined ? undefined : parsePackage(row.package);
    if (own !== undefined && isSamePackage(own, reference)) return serverOf(name, row, reference);
  }
  return undefined;
}

export const WELL_KNOWN_NAMES: readonly string[] = Object.keys(ROWS);

function serverOf(name: string, row: Row, written?: PackageReference): WellKnownServer {
  const reference = written ?? (row.package === undefined ? undefined : parsePackage(row.package));
  const env = row.env ?? [];
  const template: ServerTemplate = {
    ...(reference === undefined ? {} : launchCommand(reference, row.args ?? [])),
    ...(row.url === undefined ? {} : { url: row.url, transport: "http" }),
    ...(env.length === 0 ? {} : { env: Object.fromEntries(env.map((one) => [one.name, `\${${one.name}}`])) }),
  };
  return {
    name,
    description: row.description,
    package: reference,
    template,
    parameters: [...(row.parameters ?? []), ...env],
  };
}
