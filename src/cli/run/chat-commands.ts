/** What the chat does itself. Every other `/name` is that of a skill or of a server's prompt. */
import { modelId } from "../../agent/model/open-model.ts";
import { nearMatches } from "../../catalog/near-matches.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { StoredConversation } from "../../store/store.ts";
import type { Column } from "../table.ts";
import { firstLine } from "../text-width.ts";
import type { ChatParts } from "./chat-parts.ts";
import { chosenModel, namedModels } from "./chosen-model.ts";
import { MODES, modeOf } from "./run-options.ts";

interface ChatCommand {
  readonly usage: string;
  readonly summary: string;
  readonly run: (parts: ChatParts, rest: string) => Promise<"exit" | void>;
}

const SHOWN_CONVERSATIONS = 20;

interface Entry {
  readonly name: string;
  readonly text: string;
}

const ENTRY_COLUMNS: readonly Column<Entry>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "DESCRIPTION", cell: ({ text }) => firstLine(text), shrink: true },
];

const CONVERSATION_COLUMNS: readonly Column<StoredConversation>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "LAST USED", cell: ({ updatedAt }) => updatedAt },
  { title: "TITLE", cell: ({ title }) => firstLine(title ?? ""), shrink: true },
];

/** Without a prototype: `/constructor` is no command. */
export const CHAT_COMMANDS: Readonly<Record<string, ChatCommand | undefined>> = Object.assign(
  Object.create(null) as object,
  {
    help: {
      usage: "/help",
      summary: "this list",
      async run(parts) {
        const own = Object.values(CHAT_COMMANDS).flatMap((command) =>
          command === undefined ? [] : [{ name: command.usage, text: command.summary }],
        );
        list(parts, [...own, ...callableEntries(parts)], "");
      },
    },
    tools: {
      usage: "/tools",
      summary: "what the agent can use",
      async run(parts) {
        const { tools } = parts.hub.view(parts.seat.agent.session);
        const entries = tools.map(({ name, definition }) => ({ name, text: definition.description ?? "" }));
        list(parts, entries, "There are no tools.");
      },
    },
    skills: {
      usage: "/skills",
      summary: "skills, and prompts of servers, that can be called by name",
      run: async (parts) => list(parts, callableEntries(parts), "There is nothing that can be called by name."),
    },
    model: {
      usage: "/model [id]",
      summary: "show the models, or change to another",
      async run(parts, rest) {
        const { agent } = parts.hub.config.config;
        if (rest !== "") await parts.seat.setModel(chosenModel(agent, rest));
        const now = (await parts.seat.agent.model()).id;
        const ids = new Set([now, ...namedModels(agent).map(modelId)]);
        for (const id of ids) say(parts, id === now ? `${id} (now)` : id);
      },
    },
    mode: {
      usage: "/mode [mode]",
      summary: `show the mode, or change it: ${MODES.join(", ")}`,
      async run(parts, rest) {
        if (rest !== "") parts.seat.setMode(modeOf(rest));
        say(parts, parts.seat.agent.mode);
      },
    },
    clear: {
      usage: "/clear",
      summary: "begin a new conversation",
      async run(parts) {
        await parts.seat.clear();
        say(parts, "A new conversation.");
      },
    },
    sessions: {
      usage: "/sessions",
      summary: "conversations of this folder",
      async run(parts) {
        const kept = await parts.seat.kept(SHOWN_CONVERSATIONS);
        table(parts, CONVERSATION_COLUMNS, kept, "None is kept.");
      },
    },
    resume: {
      usage: "/resume [id]",
      summary: "go on with a conversation; the beginning of its id is enough, the last one without",
      async run(parts, rest) {
        const { title, messages } = await parts.seat.resume(rest === "" ? "last" : { id: rest });
        say(parts, `${title ?? "Untitled"}, ${messages.length} messages.`);
      },
    },
    exit: { usage: "/exit", summary: "end, as Ctrl-D does", run: async () => "exit" as const },
  } satisfies Record<string, ChatCommand>,
);

function callableEntries({ seat }: ChatParts): Entry[] {
  return seat.agent.commands().map(({ name, hint, description }) => ({
    name: `/${name}${hint === undefined ? "" : ` ${hint}`}`,
    text: description,
  }));
}

/** With --json stdout is for events. */
function say({ invocation: { out } }: ChatParts, text: string): void {
  if (out.json) out.note(text);
  else out.line(text);
}

function list(parts: ChatParts, entries: readonly Entry[], nothing: string): void {
  table(parts, ENTRY_COLUMNS, entries, nothing);
}

function table<Row>(parts: ChatParts, columns: readonly Column<Row>[], rows: readonly Row[], nothing: string): void {
  const { out } = parts.invocation;
  if (rows.length === 0) say(parts, nothing);
  else if (out.json) for (const row of rows) out.note(columns.map(({ cell }) => cell(row)).join("  "));
  else out.table(columns, rows);
}

/** What was likely meant to be a command and is none, in words; undefined for what the model is to read. */
export function unknownCommand({ seat }: ChatParts, name: string, rest: string): ToolcribError | undefined {
  // With a further slash it is a path.
  if (name === "" || name.includes("/")) return undefined;
  const called = seat.agent.commands().map((command) => command.name);
  if (called.includes(name) || name === "skill-off") return undefined;
  const near = nearMatches(name, [...Object.keys(CHAT_COMMANDS), ...called]);
  // `/tmp is full` is a sentence.
  if (rest !== "" && near.length === 0) return undefined;
  return new ToolcribError("not_found", `There is no command /${name}.`, {
    hint: near.length === 0 ? "/help lists them." : `Did you mean ${near.map((each) => `/${each}`).join(", ")}?`,
  });
}
