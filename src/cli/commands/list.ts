/** `toolcrib list`: lists tools, resources and prompts. */
import { describeQuarantined } from "../../catalog/quarantine.ts";
import type { View } from "../../hub/view/view.ts";
import { type Capability, LOCAL_SOURCE, type ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { SKILLS_SOURCE, serverSkills } from "../../skills/offer/offered-skill.ts";
import { ARGUMENT_COLUMNS, describeArguments } from "../argument-schema.ts";
import { unknownServer } from "../command-config.ts";
import type { Flags, Invocation } from "../command.ts";
import { type RunningHub, showAnswers, withHub } from "../running-hub.ts";
import { plain } from "../skill/describe-skill.ts";
import { type Column, counted } from "../table.ts";

export function run(invocation: Invocation): Promise<number> {
  return withHub(invocation, async (running) => {
    const { args, flags, out } = invocation;
    const [server] = args;
    const source = server === SKILLS && !hasServer(running, SKILLS) ? SKILLS_SOURCE : server;
    // A listing of one server is not about skills.
    if (source === undefined || source === SKILLS_SOURCE) {
      for (const message of running.skillWarnings) out.warn(plain(message, Infinity));
    }
    // A server includes the skills that it offers.
    const listed = (): Capability[] =>
      chosen(running.hub.view(running.session), flags).filter(
        ({ origin }) => source === undefined || origin.source === source || origin.source === serverSkills(source),
      );
    const groups = out.showsParts ? new Groups(invocation, listed, (id) => hasServer(running, id)) : undefined;
    await connect(invocation, running, source, groups);
    const shown = listed();
    groups?.showListed();
    // Those of a hub of its own were reported when they came.
    for (const { id, warnings } of running.isShared ? running.servers() : []) {
      if (source === undefined || id === source)
        for (const message of warnings) out.warn(plain(`${id}: ${message}`, Infinity));
    }
    for (const each of running.hub.internals.quarantined()) {
      if (source !== undefined && each.source !== source) continue;
      out.warn(plain(`${each.source}: ${describeQuarantined(each)}`, Infinity));
    }
    if (shown.length === 0) assertSomethingAnswered(running);
    if (out.json) out.value(shown.map(entryOf));
    else if (shown.length === 0) out.note(unknownRole(running) ?? NOTHING);
    else if (groups === undefined) show(invocation, shown, (id) => hasServer(running, id));
    return 0;
  });
}

/** On a terminal: the listing as a group for each server, shown when it answers. */
class Groups {
  readonly #invocation: Invocation;
  readonly #listed: () => Capability[];
  readonly #isServer: (id: string) => boolean;
  /** The names that were shown, by group. */
  readonly #shown = new Map<string, string>();

  constructor(invocation: Invocation, listed: () => Capability[], isServer: (id: string) => boolean) {
    this.#invocation = invocation;
    this.#listed = listed;
    this.#isServer = isServer;
  }

  show(server: string): void {
    this.#show(
      server,
      this.#listed().filter(({ origin }) => serverCell(origin.source, this.#isServer) === server),
    );
  }

  /** All that is there now; again, if names have changed because of a server that answered later. */
  showListed(): void {
    const groups = Map.groupBy(this.#listed(), ({ origin }) => serverCell(origin.source, this.#isServer));
    for (const [server, group] of groups) this.#show(server, group);
  }

  #show(server: string, group: readonly Capability[]): void {
    const { out, flags } = this.#invocation;
    const names = group.map(({ name }) => name).join("\n");
    if (group.length === 0 || this.#shown.get(server) === names) return;
    const again = this.#shown.has(server) ? ", with the names that they have now" : "";
    if (this.#shown.size > 0) out.line("");
    this.#shown.set(server, names);
    const heading = `${out.paint("bold", server)}  ${out.paint("dim", `${counts(group)}${again}`)}`;
    if (!flags.has("schema")) {
      const shown = [...(isMixed(group) ? [KIND_COLUMN] : []), ...NAME_COLUMNS];
      out.group(heading, shown, group);
      return;
    }
    out.line(heading);
    for (const capability of group) {
      out.line("");
      showWithArguments(out, capability);
    }
  }
}

/** Who mistyped a role is offered nothing, which looks like a hub without servers. */
function unknownRole({ hub, session }: RunningHub): string | undefined {
  const { config, servers } = hub.config;
  const roles = new Set([...Object.keys(config.roles), ...servers.flatMap((spec) => spec.roles ?? [])]);
  const { role } = session;
  if (role === undefined || roles.has(role)) return undefined;
  const known = session.owner ? ` Roles: ${[...roles].join(", ") || "none"}.` : "";
  return `There is no role "${plain(role)}", so nothing is offered to it.${known}`;
}

const NOTHING = "Nothing to list. Add a server with toolcrib add, or run toolcrib status to see the existing ones.";

/** Such as `12 tools, 1 prompt`. */
function counts(group: readonly Capability[]): string {
  return [...Map.groupBy(group, ({ kind }) => kind)].map(([kind, all]) => counted(all.length, kind)).join(", ");
}

function isMixed(shown: readonly Capability[]): boolean {
  return new Set(shown.map(({ kind }) => kind)).size > 1;
}

/** The name of the user's own skills, unless a server has it. */
const SKILLS = "skills";

function hasServer(running: RunningHub, id: string): boolean {
  return running.servers().some((server) => server.id === id);
}

/** Fails if the one requested server is down. Among several, a server that is down is only reported. */
async function connect(
  { out }: Invocation,
  running: RunningHub,
  server: string | undefined,
  groups: Groups | undefined,
): Promise<void> {
  if (server === LOCAL_SOURCE || server === SKILLS_SOURCE) return;
  if (server !== undefined) {
    const id = requireServer(running, server);
    // A sleeping one is listed.
    if (running.sleeping().includes(id)) return;
    running.connect([id]);
    await showAnswers(out, running);
    return running.connectOne(id);
  }
  running.connectAuto();
  groups?.showListed();
  await showAnswers(out, running, ({ id }) => groups?.show(id));
  for (const { info, reason } of running.unreachable()) out.note(`not connected: ${info.id}: ${reason}`);
}

function requireServer(running: RunningHub, id: string): string {
  const known = running.servers();
  const server = known.find((candidate) => candidate.id === id);
  if (server === undefined) throw unknownServer(id, known);
  if (server.state === "disabled") {
    throw new ToolcribError("server_unavailable", `The server "${id}" is disabled.`, {
      hint: `Enable it with toolcrib enable ${id}.`,
    });
  }
  return id;
}

function assertSomethingAnswered(running: RunningHub): void {
  const down = running.unreachable();
  if (down.length === 0 || running.sleeping().length > 0) return;
  if (running.hub.servers.list().some(({ status }) => status === "connected")) return;
  running.assertTime();
  const reasons = down.map(({ info, reason }) => `${info.id}: ${reason}`).join("; ");
  const [only, another] = down;
  const advice = another === undefined ? only?.info.hint : undefined;
  throw new ToolcribError("server_unavailable", `No server is connected: ${reasons}`, {
    hint: `${advice === undefined ? "" : `${advice} `}Run toolcrib doctor to check them.`,
  });
}

function chosen(view: View, flags: Flags): Capability[] {
  const all = flags.has("all");
  const resources = all || flags.has("resources");
  const prompts = all || flags.has("prompts");
  return [
    ...(all || (!resources && !prompts) ? view.tools : []),
    ...(resources ? [...view.resources, ...view.templates] : []),
    ...(prompts ? view.prompts : []),
  ];
}

/** For programs: the server's definition with public names. */
function entryOf(capability: Capability): JsonObject {
  const { kind, name, origin, definition } = capability;
  const server = origin.source;
  const description = definition.description ?? "";
  switch (kind) {
    case "tool":
      return over(definition, {
        ...{ name, server, tool: origin.name, description, kind },
        // As callers see it; the server's own is there as well.
        ...(capability.shape === undefined ? {} : { original: originalEntry(capability.shape.original) }),
      });
    case "prompt":
      return over(definition, { name, server, prompt: origin.name, description, kind });
    case "resource":
      return over(definition, { uri: name, server, name: definition.name, description, kind });
    case "template":
      return over(definition, { uriTemplate: name, server, name: definition.name, description, kind });
  }
}

function originalEntry({ name, definition }: ToolCapability): JsonObject {
  return { ...definition, name };
}

/** Our keys come first, and win. */
function over(definition: JsonObject, ours: JsonObject): JsonObject {
  return { ...ours, ...definition, ...ours };
}

const NAME_COLUMNS: readonly [Column<Capability>, Column<Capability>] = [
  { title: "NAME", cell: (capability) => capability.name },
  { title: "DESCRIPTION", cell: ({ definition }) => definition.description ?? definition.title ?? "", shrink: true },
];

function columns(isServer: (id: string) => boolean): readonly Column<Capability>[] {
  const [name, description] = NAME_COLUMNS;
  return [name, { title: "SERVER", cell: ({ origin }) => serverCell(origin.source, isServer) }, description];
}

/** As `toolcrib list <server>` takes it. */
function serverCell(source: string, isServer: (id: string) => boolean): string {
  if (source === SKILLS_SOURCE) return isServer(SKILLS) ? source : SKILLS;
  return source.startsWith(serverSkills("")) ? source.slice(serverSkills("").length) : source;
}

const KIND_COLUMN: Column<Capability> = { title: "KIND", cell: (capability) => capability.kind };

function show({ out, flags }: Invocation, shown: readonly Capability[], isServer: (id: string) => boolean): void {
  if (!flags.has("schema")) {
    out.table(isMixed(shown) ? [KIND_COLUMN, ...columns(isServer)] : columns(isServer), shown);
    return;
  }
  for (const [index, capability] of shown.entries()) {
    if (index > 0) out.line("");
    showWithArguments(out, capability);
  }
}

function showWithArguments(out: Invocation["out"], capability: Capability): void {
  out.line(`${out.paint("bold", capability.name)}  ${capability.definition.description ?? ""}`.trimEnd());
  const rows = capability.kind === "tool" ? describeArguments(capability.definition.inputSchema) : [];
  if (rows.length > 0) out.table(ARGUMENT_COLUMNS, rows);
}
