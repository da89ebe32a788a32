/**
 * What the tools of well-known servers do, as a table to review: adding a server is adding a row. Hints are a server's own word
 * and often missing; for these servers the table counts, and hints can only make a tool riskier than it says.
 */

/**
 * `reads` returns what belongs to the user. `adds` changes something in a way that loses nothing and stays here. `brings` returns
 * what anyone may have written. `fetches` does so from an address of the caller's choice, which can carry data out. `destroys`
 * overwrites, deletes or runs programs. `sends` hands data to others. `remembers` writes notes, and `recalls` reads them.
 */
export type Effect = "reads" | "adds" | "brings" | "fetches" | "destroys" | "sends" | "remembers" | "recalls";

interface WellKnownServer {
  /** Packages in the registry of npm. */
  readonly npm?: readonly string[];
  /** Packages in the registry of Python. */
  readonly pypi?: readonly string[];
  /** Images of containers. */
  readonly images?: readonly string[];
  /** Hosts of the makers' own remote servers. */
  readonly hosts?: readonly string[];
  /** Its own name for itself in the handshake. Anyone can, so by this name alone a tool only becomes riskier. */
  readonly claims: readonly string[];
  /** By name, with `*` at the end for any rest; the first that fits counts. A tool that is not listed is judged as an unknown one. */
  readonly tools: Readonly<Record<string, Effect | readonly Effect[]>>;
}

const WELL_KNOWN_SERVERS: readonly WellKnownServer[] = [
  // Files, version control, data on this machine.
  {
    npm: ["@modelcontextprotocol/server-filesystem"],
    images: ["mcp/filesystem"],
    claims: ["secure-filesystem-server"],
    tools: {
      "read_*": "reads",
      "list_*": "reads",
      directory_tree: "reads",
      search_files: "reads",
      get_file_info: "reads",
      create_directory: "adds",
      write_file: "destroys",
      edit_file: "destroys",
      move_file: "destroys",
    },
  },
  {
    npm: ["@wonderwhy-er/desktop-commander"],
    claims: ["desktop-commander"],
    tools: {
      // It takes addresses too.
      read_file: "fetches",
      read_multiple_files: "reads",
      "list_*": "reads",
      get_file_info: "reads",
      get_config: "reads",
      "*_search": "reads",
      get_more_search_results: "reads",
      create_directory: "adds",
      write_file: "destroys",
      edit_block: "destroys",
      move_file: "destroys",
      set_config_value: "destroys",
      start_process: ["destroys", "sends", "brings"],
      interact_with_process: ["destroys", "sends", "brings"],
      read_process_output: "brings",
      kill_process: "destroys",
      force_terminate: "destroys",
    },
  },
  {
    pypi: ["mcp-server-git"],
    images: ["mcp/git"],
    claims: ["mcp-git"],
    tools: {
      git_status: "reads",
      "git_diff*": "reads",
      git_log: "reads",
      git_show: "reads",
      git_branch: "reads",
      git_add: "adds",
      git_commit: "adds",
      git_create_branch: "adds",
      git_init: "adds",
      git_checkout: "adds",
      git_reset: "destroys",
    },
  },
  {
    pypi: ["mcp-server-sqlite"],
    images: ["mcp/sqlite"],
    claims: ["sqlite"],
    tools: {
      read_query: "reads",
      list_tables: "reads",
      describe_table: "reads",
      create_table: "adds",
      append_insight: "adds",
      write_query: "destroys",
    },
  },
  {
    npm: ["mcp-server-kubernetes"],
    claims: ["kubernetes"],
    tools: {
      kubectl_get: "reads",
      kubectl_describe: "reads",
      kubectl_logs: "brings",
      "list_*": "reads",
      "explain_*": "reads",
      ping: "reads",
      exec_in_pod: ["destroys", "sends", "brings"],
      port_forward: "sends",
      "kubectl_*": "destroys",
      "*_helm_chart": "destroys",
    },
  },
  {
    pypi: ["mcp-server-time"],
    images: ["mcp/time"],
    claims: ["mcp-time"],
    tools: { get_current_time: "reads", convert_time: "reads" },
  },
  {
    npm: ["@modelcontextprotocol/server-sequential-thinking"],
    images: ["mcp/sequentialthinking"],
    claims: ["sequential-thinking-server"],
    tools: { sequentialthinking: "reads" },
  },
  // Notes for later.
  {
    npm: ["@modelcontextprotocol/server-memory"],
    images: ["mcp/memory"],
    claims: ["memory-server"],
    tools: {
      read_graph: "recalls",
      search_nodes: "recalls",
      open_nodes: "recalls",
      create_entities: "remembers",
      create_relations: "remembers",
      add_observations: "remembers",
      "delete_*": "destroys",
    },
  },
  {
    npm: ["@mem0/mcp-server"],
    pypi: ["mem0-mcp-server"],
    hosts: ["mcp.mem0.ai"],
    claims: ["mem0"],
    tools: {
      "search_*": "recalls",
      "get_*": "recalls",
      "list_*": "recalls",
      "add_*": "remembers",
      "update_*": ["remembers", "destroys"],
      "delete_*": "destroys",
    },
  },
  {
    pypi: ["basic-memory"],
    claims: ["Basic Memory"],
    tools: {
      "read_*": "recalls",
      view_note: "recalls",
      "search*": "recalls",
      build_context: "recalls",
      recent_activity: "recalls",
      "list_*": "recalls",
      write_note: "remembers",
      edit_note: "remembers",
      move_note: "adds",
      delete_note: "destroys",
    },
  },
  {
    pypi: ["mcp-obsidian"],
    claims: ["mcp-obsidian"],
    tools: {
      "obsidian_get_*": "recalls",
      "obsidian_batch_get_*": "recalls",
      "obsidian_list_*": "recalls",
      "obsidian_*search": "recalls",
      obsidian_append_content: "remembers",
      obsidian_patch_content: ["remembers", "destroys"],
      obsidian_put_content: ["remembers", "destroys"],
      obsidian_delete_file: "destroys",
    },
  },
  {
    pypi: ["chroma-mcp"],
    claims: ["chroma"],
    tools: {
      chroma_query_documents: "recalls",
      chroma_get_documents: "recalls",
      "chroma_list_*": "reads",
      "chroma_peek_*": "recalls",
      "chroma_get_*": "reads",
      chroma_create_collection: "adds",
      chroma_add_documents: "remembers",
      chroma_update_documents: ["remembers", "destroys"],
      "chroma_delete_*": "destroys",
    },
  },
  {
    pypi: ["mcp-server-qdrant"],
    claims: ["mcp-server-qdrant"],
    tools: { "qdrant-find": "recalls", "qdrant-store": "remembers" },
  },
  {
    npm: ["@modelcontextprotocol/server-redis"],
    images: ["mcp/redis"],
    claims: ["redis-server"],
    tools: { get: "recalls", list: "reads", set: ["remembers", "destroys"], delete: "destroys" },
  },
  // The web.
  {
    pypi: ["mcp-server-fetch"],
    images: ["mcp/fetch"],
    claims: ["mcp-fetch"],
    tools: { fetch: "fetches" },
  },
  {
    npm: ["@playwright/mcp"],
    images: ["mcp/playwright", "mcr.microsoft.com/playwright/mcp"],
    claims: ["Playwright"],
    tools: {
      browser_navigate: "fetches",
      browser_navigate_back: "brings",
      browser_snapshot: "brings",
      browser_take_screenshot: "brings",
      browser_console_messages: "brings",
      "browser_network_request*": "brings",
      browser_hover: "brings",
      browser_wait_for: "brings",
      browser_resize: "reads",
      browser_install: "adds",
      browser_close: "reads",
      browser_tabs: "fetches",
      browser_evaluate: ["sends", "destroys", "brings"],
      browser_run_code: ["sends", "destroys", "brings"],
      // Clicks, keys, forms and uploads act at the page with the user's logins.
      "browser_*": ["sends", "brings"],
    },
  },
  {
    npm: ["@modelcontextprotocol/server-puppeteer"],
    images: ["mcp/puppeteer"],
    claims: ["example-servers/puppeteer"],
    tools: {
      puppeteer_navigate: "fetches",
      puppeteer_screenshot: "brings",
      puppeteer_hover: "brings",
      "puppeteer_*": ["sends", "brings"],
    },
  },
  {
    npm: ["chrome-devtools-mcp"],
    claims: ["chrome_devtools"],
    tools: {
      navigate_page: "fetches",
      new_page: "fetches",
      "take_*": "brings",
      "list_*": "brings",
      "get_*": "brings",
      hover: "brings",
      wait_for: "brings",
      "performance_*": "reads",
      evaluate_script: ["sends", "destroys", "brings"],
      click: ["sends", "brings"],
      "fill*": ["sends", "brings"],
      press_key: ["sends", "brings"],
      upload_file: ["sends", "brings"],
      drag: ["sends", "brings"],
      handle_dialog: ["sends", "brings"],
    },
  },
  {
    npm: ["@modelcontextprotocol/server-brave-search", "@brave/brave-search-mcp-server"],
    images: ["mcp/brave-search"],
    claims: ["example-servers/brave-search", "brave-search-mcp-server"],
    tools: { "brave_*": "brings" },
  },
  {
    npm: ["tavily-mcp"],
    hosts: ["mcp.tavily.com"],
    claims: ["tavily-mcp"],
    tools: {
      "tavily-search": "brings",
      tavily_search: "brings",
      "tavily*": "fetches",
    },
  },
  {
    npm: ["exa-mcp-server"],
    hosts: ["mcp.exa.ai"],
    claims: ["exa-search-server"],
    tools: { "crawling*": "fetches", "*_exa": "brings", "deep_researcher_*": "brings" },
  },
  {
    npm: ["firecrawl-mcp"],
    hosts: ["mcp.firecrawl.dev"],
    claims: ["firecrawl-fastmcp"],
    tools: { firecrawl_search: "brings", firecrawl_check_crawl_status: "brings", "firecrawl_*": "fetches" },
  },
  {
    npm: ["@perplexity-ai/mcp-server", "server-perplexity-ask"],
    images: ["mcp/perplexity-ask"],
    claims: ["ai.perplexity/mcp-server"],
    tools: { "perplexity_*": "brings" },
  },
  {
    npm: ["@upstash/context7-mcp"],
    images: ["mcp/context7"],
    hosts: ["mcp.context7.com"],
    claims: ["Context7"],
    tools: { "resolve-library-id": "brings", "get-library-docs": "brings", "query-docs": "brings" },
  },
  {
    pypi: ["markitdown-mcp"],
    images: ["mcp/markitdown"],
    claims: ["markitdown"],
    tools: { convert_to_markdown: "fetches" },
  },
  {
    npm: ["@modelcontextprotocol/server-google-maps"],
    images: ["mcp/google-maps"],
    claims: ["mcp-server/google-maps"],
    tools: { "maps_*": "brings" },
  },
  {
    pypi: ["awslabs.aws-documentation-mcp-server"],
    claims: ["awslabs.aws-documentation-mcp-server"],
    tools: { read_documentation: "brings", search_documentation: "brings", recommend: "brings" },
  },
  // Where people write to each other, and others can write to the user.
  {
    npm: ["@gongrzhe/server-gmail-autoauth-mcp", "@gongrzhe/server-gmail-mcp"],
    claims: ["gmail"],
    tools: {
      read_email: "brings",
      search_emails: "brings",
      // A stranger's file, in a folder and under a name of the caller's choice.
      download_attachment: ["brings", "destroys"],
      list_email_labels: "reads",
      list_filters: "reads",
      get_filter: "reads",
      draft_email: "adds",
      create_label: "adds",
      send_email: "sends",
      // A filter can forward everything that comes.
      "create_filter*": "sends",
      "modify_*": "destroys",
      "batch_modify_*": "destroys",
      "update_*": "destroys",
      "delete_*": "destroys",
      "batch_delete_*": "destroys",
    },
  },
  {
    npm: ["@modelcontextprotocol/server-slack", "slack-mcp-server"],
    images: ["mcp/slack"],
    hosts: ["mcp.slack.com"],
    claims: ["slack-mcp-server", "Slack MCP Server"],
    tools: {
      slack_list_channels: "reads",
      "slack_get_*": "brings",
      "slack_search_*": "brings",
      "slack_read_*": "brings",
      "conversations_add_*": "sends",
      "conversations_*": "brings",
      channels_list: "reads",
      "slack_*": "sends",
    },
  },
  {
    npm: ["@modelcontextprotocol/server-github"],
    images: ["ghcr.io/github/github-mcp-server", "mcp/github", "mcp/github-mcp-server"],
    hosts: ["api.githubcopilot.com"],
    claims: ["github-mcp-server"],
    tools: {
      get_me: "reads",
      get_teams: "reads",
      "get_*": "brings",
      "list_*": "brings",
      "search_*": "brings",
      issue_read: "brings",
      pull_request_read: "brings",
      download_workflow_run_artifact: "brings",
      delete_file: ["sends", "destroys"],
      create_or_update_file: ["sends", "destroys"],
      push_files: ["sends", "destroys"],
      merge_pull_request: ["sends", "destroys"],
      "delete_*": "destroys",
      "create_*": "sends",
      "add_*": "sends",
      "update_*": "sends",
      issue_write: "sends",
      sub_issue_write: "sends",
      pull_request_review_write: "sends",
      "submit_*": "sends",
      "request_*": "sends",
      "assign_*": "sends",
      "run_*": ["sends", "destroys"],
      "rerun_*": ["sends", "destroys"],
      fork_repository: "sends",
    },
  },
  {
    npm: ["@modelcontextprotocol/server-gitlab", "@zereight/mcp-gitlab"],
    images: ["mcp/gitlab"],
    claims: ["gitlab-mcp-server", "better-gitlab-mcp-server"],
    tools: {
      "get_*": "brings",
      "list_*": "brings",
      "search_*": "brings",
      my_issues: "brings",
      "delete_*": "destroys",
      push_files: ["sends", "destroys"],
      create_or_update_file: ["sends", "destroys"],
      merge_merge_request: ["sends", "destroys"],
      "create_*": "sends",
      "update_*": "sends",
      fork_repository: "sends",
    },
  },
  {
    npm: ["@notionhq/notion-mcp-server"],
    images: ["mcp/notion"],
    hosts: ["mcp.notion.com"],
    claims: ["Notion API"],
    tools: {
      "API-post-search": "brings",
      "API-post-database-query": "brings",
      "API-query-data-source": "brings",
      "API-get-*": "brings",
      "API-retrieve-*": "brings",
      "API-delete-*": "destroys",
      "API-*": ["sends", "destroys"],
      "notion-search": "brings",
      "notion-fetch": "brings",
      "notion-get-*": "brings",
      "notion-*": ["sends", "destroys"],
    },
  },
  {
    npm: ["linear-mcp-server"],
    hosts: ["mcp.linear.app"],
    claims: ["Linear MCP", "mcp-linear"],
    tools: {
      "get_*": "brings",
      "list_*": "brings",
      "search_*": "brings",
      "create_*": "sends",
      "update_*": "sends",
      "save_*": "sends",
    },
  },
  {
    pypi: ["mcp-atlassian"],
    images: ["ghcr.io/sooperset/mcp-atlassian"],
    hosts: ["mcp.atlassian.com"],
    claims: ["Atlassian MCP", "atlassian-mcp-server"],
    tools: {
      "jira_get_*": "brings",
      jira_search: "brings",
      "jira_delete_*": ["sends", "destroys"],
      "jira_*": "sends",
      "confluence_get_*": "brings",
      confluence_search: "brings",
      "confluence_delete_*": ["sends", "destroys"],
      "confluence_*": "sends",
      "get*": "brings",
      "search*": "brings",
      "lookup*": "reads",
      atlassianUserInfo: "reads",
      "create*": "sends",
      "edit*": ["sends", "destroys"],
      "update*": ["sends", "destroys"],
      "add*": "sends",
      "transition*": "sends",
    },
  },
  {
    npm: ["@sentry/mcp-server"],
    hosts: ["mcp.sentry.dev"],
    claims: ["Sentry MCP"],
    tools: {
      whoami: "reads",
      "find_*": "reads",
      "get_*": "brings",
      "search_*": "brings",
      analyze_issue_with_seer: "brings",
      "create_*": "sends",
      "update_*": "sends",
    },
  },
  {
    npm: ["@modelcontextprotocol/server-gdrive"],
    images: ["mcp/gdrive"],
    claims: ["example-servers/gdrive"],
    tools: { search: "brings", gdrive_search: "brings", gdrive_read_file: "brings" },
  },
  // Rows may hold what strangers typed into a form.
  {
    npm: ["@modelcontextprotocol/server-postgres"],
    images: ["mcp/postgres"],
    claims: ["example-servers/postgres"],
    tools: { query: "brings" },
  },
  {
    npm: ["@supabase/mcp-server-supabase"],
    hosts: ["mcp.supabase.com"],
    claims: ["supabase"],
    tools: {
      execute_sql: ["brings", "destroys"],
      apply_migration: "destroys",
      deploy_edge_function: ["sends", "destroys"],
      get_logs: "brings",
      search_docs: "brings",
      "list_*": "reads",
      "get_*": "reads",
      "generate_*": "reads",
      confirm_cost: "reads",
      "create_*": "sends",
      "delete_*": "destroys",
      "pause_*": "destroys",
      "restore_*": "destroys",
      "reset_*": "destroys",
      "rebase_*": "destroys",
      "merge_*": "destroys",
    },
  },
  {
    npm: ["@stripe/mcp"],
    hosts: ["mcp.stripe.com"],
    claims: ["Stripe"],
    tools: {
      "list_*": "brings",
      "search_*": "brings",
      "fetch_*": "brings",
      "retrieve_*": "reads",
      get_stripe_account_info: "reads",
      cancel_subscription: ["sends", "destroys"],
      "create_*": "sends",
      "update_*": ["sends", "destroys"],
      finalize_invoice: "sends",
    },
  },
];

/** By what a server can be recognised. */
export interface ServerIdentity {
  /** The package, image or host that is certainly started or reached. */
  readonly sure?: { readonly in: "npm" | "pypi" | "images" | "hosts"; readonly name: string } | undefined;
  /** Names that it may have wrongly: of its program, of what else the config says, and its own for itself. */
  readonly claims: readonly string[];
}

/** The entry of a tool in the table. */
export interface KnownTool {
  readonly effects: ReadonlySet<Effect>;
  /** False where it only may be that server: the tool can only become riskier. */
  readonly isSure: boolean;
}

export function findKnownTool({ sure, claims }: ServerIdentity, tool: string): KnownTool | undefined {
  const known = sure && WELL_KNOWN_SERVERS.find((server) => server[sure.in]?.includes(sure.name));
  const servers = known === undefined ? WELL_KNOWN_SERVERS.filter((server) => isClaimed(server, claims)) : [known];
  const effects = servers.flatMap(
    ({ tools }) => Object.entries(tools).find(([pattern]) => fits(pattern, tool))?.[1] ?? [],
  );
  return effects.length === 0 ? undefined : { effects: new Set(effects), isSure: known !== undefined };
}

function isClaimed(server: WellKnownServer, names: readonly string[]): boolean {
  const { npm = [], pypi = [], images = [], hosts = [], claims } = server;
  return [npm, pypi, images, hosts, claims].some((list) => list.some((name) => names.includes(name)));
}

/** One `*`, at either end or between. */
function fits(pattern: string, name: string): boolean {
  const [start = "", end] = pattern.split("*");
  if (end === undefined) return name === pattern;
  return name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end);
}

/**
 * Words in the name of a tool that speak against hints that say it is harmless, for servers that are not known and not
 * trusted. A tool is not believed to be closed to the world if it is called `send_mail`.
 */
const TELLING_WORDS: readonly (readonly [Effect, ReadonlySet<string>])[] = [
  [
    "sends",
    words(`send post publish upload push email mail tweet share invite pay transfer submit forward reply comment export deploy
      webhook notify message dm sms call merge`),
  ],
  [
    "destroys",
    words(`delete remove drop destroy purge wipe truncate overwrite kill exec execute run shell eval command terminal reset
      uninstall format revoke`),
  ],
  [
    "brings",
    words(`fetch browse scrape crawl web url page http search inbox email emails mail mails message messages issue issues
      comment comments feed rss news tweet tweets ticket tickets review reviews`),
  ],
  ["recalls", words("recall memory memories remember knowledge")],
];

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/));
}

/** The effects that the name of a tool gives away. */
export function effectsByName(name: string): ReadonlySet<Effect> {
  const parts = name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return new Set(TELLING_WORDS.flatMap(([effect, set]) => (parts.some((part) => set.has(part)) ? [effect] : [])));
}

/** An ordinary address is shorter. */
const MAX_ADDRESS_LENGTH = 200;
const MAX_QUERY_LENGTH = 64;
/** Of text that is no address. */
const MAX_TEXT_LENGTH = 64;
/** Letters and digits without a break, as in what is encoded. */
const BLOB = /[A-Za-z0-9+=]{28,}/;
const MAX_HOST_LENGTH = 80;
/** Of characters in pieces that are no words. */
const MAX_ODD_LENGTH = 24;
/** Pieces of the same length in a row, as in what is cut up. */
const MIN_EVEN_PIECES = 5;
const MIN_EVEN_LENGTH = 20;
const MAX_DEPTH = 8;
const MAX_VALUES = 1000;

/**
 * Whether an address among the arguments, however deep, is long or strange enough to carry data to whoever gets it. Arguments
 * that are too many or too deep to look at do.
 */
export function addressCarriesData(args: Readonly<Record<string, unknown>>): boolean {
  let left = MAX_VALUES;
  const carries = (value: unknown, depth: number): boolean => {
    if (--left < 0 || depth > MAX_DEPTH) return true;
    if (typeof value === "string") return isCarrying(value.trim());
    if (typeof value !== "object" || value === null) return false;
    if (Array.isArray(value)) return value.some((each) => carries(each, depth + 1));
    return Object.entries(value).some(([key, each]) => isCarrying(key) || carries(each, depth + 1));
  };
  return carries(args, 0);
}

function isCarrying(text: string): boolean {
  if (text.length > MAX_ADDRESS_LENGTH) return true;
  const address = parseAddress(text);
  if (address === null) return text.length > MAX_TEXT_LENGTH || looksEncoded(text);
  const { hostname, pathname, search, hash, username, password } = address;
  return (
    search.length + hash.length > MAX_QUERY_LENGTH ||
    username + password !== "" ||
    hostname.length > MAX_HOST_LENGTH ||
    looksEncoded(`${hostname}${pathname}${search}${hash}`)
  );
}

/** As a browser or a server that is lenient may read it: also without a scheme, or behind another one. */
function parseAddress(text: string): URL | null {
  const inner = text.replace(/^(?:[a-z][a-z0-9+.-]*:)+(?=https?:)/i, "");
  return URL.parse(/^https?:/i.test(inner) ? inner : `https://${inner}`);
}

/** Text without words in it, whole or cut into pieces. */
function looksEncoded(text: string): boolean {
  let plain: string;
  try {
    plain = decodeURIComponent(text);
  } catch {
    return true;
  }
  if (BLOB.test(text) || BLOB.test(plain)) return true;
  const pieces = plain.split(/[^\p{L}\p{N}\p{M}]+/u).filter((piece) => piece !== "");
  if (pieces.filter(isOdd).join("").length > MAX_ODD_LENGTH) return true;
  let same = 0;
  return pieces.some(({ length }, index) => {
    same = length === pieces[index - 1]?.length ? same + 1 : 1;
    return same >= MIN_EVEN_PIECES && same * length >= MIN_EVEN_LENGTH;
  });
}

/** No word: with digits, capitals inside, or without a vowel. */
function isOdd(piece: string): boolean {
  return /\d|[a-z][A-Z]|^[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{3,}$/.test(piece);
}
