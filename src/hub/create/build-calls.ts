/** The parts that a call passes and that record it, wired for the first time. */
import { CallLimits } from "../../policy/call-limits.ts";
import { CallCounts } from "../../policy/rule-conditions.ts";
import { thisMachine } from "../../skills/needs.ts";
import { Tracing } from "../../telemetry/tracing.ts";
import { auditSink } from "../audit/hub-audit.ts";
import { Approvals } from "../call/approvals.ts";
import { Detectors } from "../detect/detectors.ts";
import { Passages } from "../call/passages.ts";
import { HookChain } from "../call/hooks.ts";
import type { HubOptions } from "../hub-options.ts";
import { ServerSkillOffers } from "../skills/server-skills.ts";
import { createDispatch, SkillSources } from "../skills/skill-sources.ts";
import type { ServerParts } from "./build-servers.ts";
import type { ConfiguredParts, HubBase } from "./open-base.ts";
import { type HubParts, wireHub } from "./wiring.ts";

export interface CallParts {
  readonly parts: HubParts;
  readonly serverSkills: ServerSkillOffers;
}

export async function buildCalls(
  base: HubBase,
  { config, registry, auditLog }: ConfiguredParts,
  { catalog, connections, definitions, sessionSources, logins }: ServerParts,
  { onAsk }: HubOptions,
): Promise<CallParts> {
  const { env, clock, redactor, events, current, sessions, cluster, shared } = base;
  const skills: SkillSources = new SkillSources(
    catalog,
    createDispatch({
      serverOf: (skill) => skills.serverOfSkill(skill),
      session: (id) => sessions.all().find((each) => each.id === id),
      tools: (viewer) => current.view(viewer).tools,
      call: (caller, request) => current.callTool(caller, request),
    }),
    (server, uri) => events.emit("resource-updated", { server, uri, originUri: uri }),
    () => events.emit("skills", {}),
  );
  const serverSkills = new ServerSkillOffers({
    sources: () => skills,
    machine: () => thisMachine(env, current.config.servers),
    mask: redactor.maskContent,
    warn: (message, server) => events.emit("warning", { server, message }),
  });
  const approvals = new Approvals({
    ...{ clock, events, audit: auditLog, onAsk, shared: shared?.principals },
    config: () => current.config,
    sessionSources,
  });
  const limits = new CallLimits(clock, config.config.limits);
  events.on("session", ({ session, open }) => {
    if (open) return;
    limits.forget(session.id);
    registry.forgetContext(session.id);
  });
  const tracing = new Tracing(redactor.mask);
  await tracing.ready();
  const { secrets } = base.opened;
  const detectors = new Detectors({
    clock,
    resolve: async (reference, baseDir) => (await secrets.resolve(reference, { baseDir })).value,
    mask: redactor.maskContent,
    warn: (message) => base.warn(message),
  });
  await detectors.prepare(config);
  const parts: HubParts = {
    ...{ clock, cluster, redactor, registry, catalog, sessionSources, skills, definitions, approvals, limits, tracing },
    servers: connections,
    counts: new CallCounts(clock),
    logins,
    place: { env, home: base.home },
    ...{ secrets, detectors },
    warn: (server, message) => events.emit("warning", { server, message }),
    taints: sessions.taints,
    hooks: new HookChain(),
    passages: new Passages(),
    audit: auditSink(auditLog, events),
    call: (caller, request) => current.callTool(caller, request),
    searching: new WeakSet(),
  };
  current.replace(wireHub(parts, config));
  return { parts, serverSkills };
}
