import { systemClock } from "../model/clock.ts";
import type { Session } from "../sessions/session.ts";
import { BuiltInAgent } from "./agent.ts";
import type { Agent, AgentOptions } from "./agent-options.ts";
import { ChosenModel } from "./chosen-model.ts";
import { Conversations } from "./conversation/conversations.ts";
import { answerSampling } from "./sampling/answer-sampling.ts";

/**
 * An agent over the tools of a hub. It connects to nothing yet; the model is opened by its first run.
 *
 *     await using agent = createAgent({ hub, model: "anthropic/claude-sonnet-4-5" });
 *     for await (const event of agent.run("What changed in this folder today?")) {
 *       if (event.type === "text") process.stdout.write(event.text);
 *     }
 */
export function createAgent(options: AgentOptions): Agent {
  const { hub, clock = systemClock, env = process.env } = options;
  const model = new ChosenModel(options.model, { hub, env, clock });
  const { session, mounted } =
    options.session === undefined ? ownSession(options, model) : { session: options.session };
  const conversation =
    options.conversation ??
    new Conversations(hub.store, clock).create({ door: session.door, cwd: session.workspaceDir, user: session.user });
  return new BuiltInAgent({ ...options, model, session, conversation, ownsSession: mounted !== undefined, mounted });
}

interface OwnSession {
  readonly session: Session;
  /** Resolves when its servers are there, have failed, or take too long. */
  readonly mounted: Promise<void>;
}

function ownSession(options: AgentOptions, model: ChosenModel): OwnSession {
  const { hub } = options;
  const { servers, ...given } = options.sessionOptions ?? {};
  const config = hub.config.config.agent;
  const mode = options.sampling ?? config.sampling;
  // What is not offered to servers is not asked for.
  const sampling =
    mode === "deny"
      ? {}
      : {
          onSample: answerSampling({
            model: () => model.open(),
            mode,
            maxTokens: config.samplingTokens,
            clock: options.clock,
            ask: options.onSampling,
          }),
        };
  const session = hub.openSession({ ...sampling, ...given });
  const mounted = servers === undefined ? Promise.resolve() : session.own.mount(servers);
  // Told by the first run.
  mounted.catch(() => {});
  return { session, mounted };
}
