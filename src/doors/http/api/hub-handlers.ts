/** Operations on servers, skills, sessions, approvals and the audit log, and the overview. */
import type { CheckedInput } from "../../../contract/operations.ts";
import type { ServerDetail } from "../../../contract/server-schemas.ts";
import type { Hub } from "../../../hub/hub.ts";
import { type Caller, identityOf, SCOPES } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { ServerInfo } from "../../../model/server-state.ts";
import type { Session } from "../../../sessions/session.ts";
import { originRecord, taintRecord } from "../../../sessions/taint.ts";
import { findSession, namedSession } from "./caller-sessions.ts";
import { missingScope } from "../http-access.ts";
import {
  containsText,
  type DeepReadonly,
  type HandlerParts,
  handlersOf,
  invalidInput,
  type OperationContext,
  pageOf,
} from "./operation-handler.ts";
import { visibleServer, visibleServers } from "./visibility.ts";

const serverHandlers = handlersOf({
  listServers(input, { session, caller }, { hub }) {
    const matching = visibleServers(hub, session).filter((info) => matchesServerFilter(info, input));
    const { entries, total, next } = pageOf(matching, input, ({ id }) => id);
    const seesEntries = caller.owner || caller.scopes.has("admin");
    const own = new Set(session.own.servers().map(({ id }) => id));
    const servers = entries.map((info) => {
      // It is not written down, and its credentials are its client's.
      if (own.has(info.id)) return { ...info, enabled: true, autoConnect: true };
      const { enabled, autoConnect, config } = hub.servers.entryOf(info.id);
      return { ...info, enabled, autoConnect, ...(seesEntries ? { config } : {}) };
    });
    return { servers, total, ...next };
  },

  async getServer({ serverId }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    return { server: await detailOf(hub, serverId) };
  },

  async addServer({ serverId, config }, _context, { hub }) {
    const { id: given, ...entry } = config;
    const id = serverId ?? given;
    if (id === undefined) throw invalidInput([{ path: "id", message: "is missing" }]);
    return { server: await changedDetail(hub, await hub.servers.add(id, entry)) };
  },

  getServerProcess({ serverId }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    return hub.internals.servers.process(serverId);
  },

  getServerLog(input, { session }, { hub }) {
    visibleServer(hub, session, input.serverId);
    return hub.internals.servers.log(input);
  },

  async updateServer({ serverId, updates, ifMatch }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    const info = await hub.servers.update(serverId, updates, { ifMatch });
    return { server: await changedDetail(hub, info) };
  },

  async removeServer({ serverId, ifMatch }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    await hub.servers.remove(serverId, { ifMatch });
    return { serverId };
  },

  async connectServer({ serverId }, { session }, { hub }) {
    if (visibleServer(hub, session, serverId).state === "disabled") {
      const hint = "Set `enabled` of its entry to true, which connects it as well.";
      throw new ToolcribError("conflict", `The server "${serverId}" is disabled.`, { hint });
    }
    return { server: await hub.servers.connect(serverId) };
  },

  async disconnectServer({ serverId, ifIdle }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    const calls = ifIdle ? (new Map(hub.internals.measures().underWay).get(serverId) ?? 0) : 0;
    if (calls > 0) {
      throw new ToolcribError("conflict", `The server "${serverId}" has ${calls} calls in progress.`, {
        hint: "Disconnect it without `ifIdle` to end them.",
        details: { calls },
      });
    }
    return { server: await hub.servers.disconnect(serverId) };
  },

  async parseServers({ text }) {
    const { parsePastedServers: parseServers } = await import("../../../config/pasted-servers.ts");
    return { servers: parseServers(text) };
  },

  testServer({ serverId, config }, { signal }, { hub }) {
    const { id, ...entry }: JsonObject & { id?: string | undefined } = config;
    return hub.servers.test(serverId ?? id, entry, signal);
  },
});

function matchesServerFilter({ id, name, state, tags }: ServerInfo, filter: CheckedInput<"listServers">): boolean {
  if (!containsText(filter.q, [id, name])) return false;
  if (filter.state !== undefined && filter.state !== state) return false;
  return filter.tag === undefined || tags.includes(filter.tag);
}

/** With what was odd about the entry that was sent. */
async function changedDetail(hub: Hub, { id, warnings }: ServerInfo): Promise<DeepReadonly<ServerDetail>> {
  return { ...(await detailOf(hub, id)), warnings: [...warnings] };
}

async function detailOf(hub: Hub, id: string): Promise<DeepReadonly<ServerDetail>> {
  const detail = await hub.servers.get(id);
  if (detail !== undefined) return detail;
  throw new ToolcribError("not_found", `The server "${id}" was removed meanwhile.`);
}

const skillHandlers = handlersOf({
  async listSkills(input, { session, caller }, { hub }) {
    const { q, kind, source } = input;
    const broken = caller.scopes.has("admin") ? await hub.skills.broken() : [];
    const matching = [...hub.skills.infos(session), ...broken].filter(
      (skill) =>
        (kind === undefined || skill.kind === kind) &&
        (source === undefined || skill.source === source) &&
        containsText(q, [skill.name, skill.description]),
    );
    const { entries, total, next } = pageOf(matching, input, ({ id }) => id);
    return { skills: entries, total, ...next };
  },

  async getSkill({ skillId }, { session }, { hub }) {
    const skill = await hub.skills.describe(skillId, session);
    if (skill === undefined) throw noSkill(skillId);
    return { skill };
  },

  async getInstructions({ skillId }, { session }, { hub }) {
    const skill = hub.skills.get(skillId, { session });
    if (skill === undefined) throw noSkill(skillId);
    const instructions = await hub.skills.instructions(skill.id, { session });
    return {
      skillId: skill.id,
      name: skill.name,
      path: skill.dir,
      instructions,
      manifest: hub.skills.manifest(skill.id, { session }),
    };
  },

  skillPlaces: async (_input, _context, { hub }) => ({ places: await hub.skills.places() }),
  scanSkills: ({ path }, _context, { hub }) => hub.skills.scan(path),
  importSkills: (input, _context, { hub }) => hub.skills.import(input),
  removeSkill: ({ skillId }, _context, { hub }) => hub.skills.remove(skillId),
});

function noSkill(id: string): ToolcribError {
  return new ToolcribError("not_found", `There is no skill "${id}".`, {
    hint: "GET /api/v1/skills lists those there are.",
  });
}

const sessionHandlers = handlersOf({
  listSessions: (input, _context, { hub }) => hub.internals.activity.sessions(input),

  async openSession({ servers, waitMs, parent: parentId, conversation, ...input }, context, parts) {
    const parent = parentId === undefined ? undefined : namedSession(parts.hub.internals, context.caller, parentId);
    if (parentId !== undefined && parent === undefined) {
      throw new ToolcribError("not_found", `No session of yours has the id ${parentId}.`);
    }
    // The ids of one caller say nothing about those of another.
    const ownId = conversation && JSON.stringify([identityOf(context.caller), conversation]);
    const options = { ...sessionOptions(input, context.caller), parent, conversation: ownId };
    const session = parts.opened.open(context.caller, context.session, options);
    const giveUp = (): void => session.close();
    context.signal.addEventListener("abort", giveUp, { once: true });
    try {
      if (servers !== undefined) await session.own.mount(servers, { waitMs });
      if (context.signal.aborted) throw new ToolcribError("cancelled", "The request was cancelled.");
    } catch (error) {
      session.close();
      throw error;
    } finally {
      context.signal.removeEventListener("abort", giveUp);
    }
    forwardSessionEvents(session, context, parts);
    const { id, own } = session;
    return { id, sessionId: id, servers: own.servers(), notices: own.notices() };
  },

  async getSession({ sessionId }, { caller }, { hub }) {
    assertCanAccess(hub, caller, sessionId);
    const open = findSession(hub.internals, sessionId);
    const session = await hub.internals.activity.session(open?.id ?? sessionId);
    if (session === undefined) throw new ToolcribError("not_found", `No session has the id ${sessionId}.`);
    const own = open?.own;
    return { session: { ...session, ...(own && { servers: own.servers(), notices: own.notices() }) } };
  },

  listTaint(_input, _context, { hub }) {
    const { taints } = hub.internals;
    return {
      sessions: hub.internals.sessions().flatMap(({ id, door, user = null, taint }) => {
        return taint === null ? [] : [{ id, door, user, taint: taintRecord(taint) }];
      }),
      memories: taints.memories().map(({ server, origins }) => ({ server, origins: origins.map(originRecord) })),
    };
  },

  listPassages({ callId }, _context, { hub }) {
    return { passages: hub.internals.passages(callId).map((passage) => ({ ...passage, rules: [...passage.rules] })) };
  },

  async clearTaint({ sessionId, memory }, { caller, session }, { hub }) {
    if ((sessionId === undefined) === (memory === undefined)) {
      throw new ToolcribError("invalid_arguments", "Name either a session or a memory-like server.", {
        hint: "`sessionId` or `memory`. listTaint shows what there is.",
      });
    }
    const by = { user: caller.user ?? null, door: session.door };
    const choice = memory === undefined ? { session: sessionId ?? "" } : { memory };
    await hub.internals.taints.clear(choice, by);
    return { sessionId, memory };
  },

  async closeSession({ sessionId }, { caller }, { hub }) {
    assertCanAccess(hub, caller, sessionId);
    await hub.internals.activity.closeSession(findSession(hub.internals, sessionId)?.id ?? sessionId);
    return { sessionId };
  },
});

/** Only operators may learn whether another caller's session exists. */
function assertCanAccess(hub: Hub, caller: Caller, id: string): void {
  if (!caller.scopes.has("admin") && namedSession(hub.internals, caller, id) === undefined) throw missingScope("admin");
}

type RequestedOptions = Pick<CheckedInput<"openSession">, "role" | "workspaceDir">;

function sessionOptions({ role, workspaceDir }: RequestedOptions, caller: Caller): RequestedOptions {
  const isOperator = caller.scopes.has("admin");
  if (role !== undefined && role !== caller.role && (caller.role !== undefined || !isOperator)) {
    throw new ToolcribError("denied", "The role is not this caller's role.", {
      hint: "Leave `role` out: the session has the role of the token.",
    });
  }
  // Servers treat a root as a folder that they may work in.
  if (workspaceDir !== undefined && !isOperator) throw missingScope("admin");
  return { role, workspaceDir };
}

/** Sends later events of the session to the client, if the door supports that. */
function forwardSessionEvents(session: Session, { tell }: OperationContext, { redactor }: HandlerParts): void {
  if (tell === undefined) return;
  const { id, own } = session;
  own.on("notice", (notice) => tell("session.notice", redactor.maskAll({ session: id, notice })));
  own.on("server", (server) => tell("session.server", redactor.maskAll({ session: id, server })));
}

const approvalHandlers = handlersOf({
  listApprovals: (input, _context, { hub }) => hub.internals.activity.approvals(input),

  async getApproval({ approvalId }, _context, { hub }) {
    const approval = await hub.internals.activity.approval(approvalId);
    if (approval !== undefined) return { approval };
    throw new ToolcribError("not_found", `No approval has the id ${approvalId}.`);
  },

  answerApproval({ approvalId, answer }, { caller, session }, { hub }) {
    const isOperator = caller.scopes.has("admin");
    // It changes the rules for all callers.
    if (answer.startsWith("always") && !isOperator) throw missingScope("admin");
    return hub.internals.activity.answer(
      approvalId,
      answer,
      caller.user ?? null,
      session.door,
      // An operator may answer own calls: a person who tries a tool on the page answers there too.
      isOperator ? undefined : caller.key,
    );
  },
});

const auditHandlers = handlersOf({
  listAudit: (input, _context, { hub }) => hub.audit.query(input),
  getStats: (input, _context, { hub }) => hub.audit.stats(input),
  verifyAudit: (_input, _context, { hub }) => hub.audit.verify(),
  getRecording: (_input, _context, { hub }) => hub.audit.recording.state,

  setRecording({ server = null, minutes }, { caller }, { hub }) {
    const { recording } = hub.audit;
    const isKnown = server === null || server === "local" || hub.servers.list().some(({ id }) => id === server);
    // One that was removed meanwhile can still be ended.
    if (!isKnown && minutes > 0) throw new ToolcribError("not_found", `No server has the id ${server}.`);
    recording.set(server, minutes, caller.user ?? null);
    return recording.state;
  },
});

const overviewHandlers = handlersOf({
  me: (_input, { caller, baseUrl }, { version }) => ({
    user: caller.user ?? null,
    role: caller.role ?? null,
    owner: caller.owner,
    scopes: SCOPES.filter((scope) => caller.scopes.has(scope)),
    version,
    url: baseUrl,
  }),
  overview: (_input, _context, { hub }) => hub.internals.activity.overview(),
  getTokenCosts: (_input, _context, { hub }) => hub.internals.tokenCosts(),
});

export const hubHandlers = {
  ...serverHandlers,
  ...skillHandlers,
  ...sessionHandlers,
  ...approvalHandlers,
  ...auditHandlers,
  ...overviewHandlers,
};
