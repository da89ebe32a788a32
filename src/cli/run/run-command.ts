/** The built-in agent at a terminal or in a script: one prompt, or a chat. */
import type { ChatModel } from "../../agent/model/chat-model.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { exitCodeOf, type Invocation } from "../command.ts";
import { loadCommandConfig } from "../command-config.ts";
import { awaitServers, openAgentHub, RunAgent } from "./run-agent.ts";
import { runChat } from "./chat.ts";
import { chosenModel, type RunOptions, runOptions } from "./run-options.ts";
import { Interrupts, runTurn, turnView } from "./show-turn.ts";
import { terminalQuestions } from "./terminal-questions.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { out, flags } = invocation;
  const options = await runOptions(invocation);
  const interrupts = new Interrupts({ keepsRunning: options.isChat, timeoutMs: flags.number("timeout") });
  try {
    return await withAgent(invocation, options, interrupts);
  } catch (thrown) {
    // An error after a signal or timeout is a consequence of it.
    const error = interrupts.exitCode === undefined ? asToolcribError(thrown) : interrupts.timedOut;
    if (!out.json && error !== undefined) throw error;
    // Every line of the output is a JSON object.
    if (error !== undefined) out.record({ error: out.redactor.maskAll(error.toObject()) });
    return interrupts.exitCode ?? exitCodeOf(error?.code ?? "internal");
  } finally {
    interrupts.stop();
  }
}

async function withAgent(invocation: Invocation, options: RunOptions, interrupts: Interrupts): Promise<number> {
  const { out, cwd, env } = invocation;
  const config = await loadCommandConfig(invocation);
  const model = chosenModel(config.config.agent, options.model);
  const view = turnView(out, options);
  const questions = terminalQuestions(invocation, {
    before: () => view.pause(),
    after: () => view.resume(),
    interrupt: () => interrupts.interrupt(),
  });
  const hub = await openAgentHub(invocation, config);
  let runAgent: RunAgent | undefined;
  try {
    runAgent = await RunAgent.open({ ...options, hub, cwd, env, model, questions }, options.resume);
    // Fails early if the API key is missing.
    refuseUnseen(options.prompt, await runAgent.agent.model());
    await awaitServers(hub, invocation, interrupts.ending);
    if (options.isChat) {
      const exitCode = await runChat({ invocation, hub, runAgent, interrupts, view }, options.prompt);
      return interrupts.exitCode ?? exitCode;
    }
    const exitCode = await runTurn(runAgent.agent, options.prompt ?? [], { view, out, signal: interrupts.beginTurn() });
    // The loop only knows that it was cancelled, not that the time was up.
    if (interrupts.timedOut !== undefined && exitCode === 1 && !out.json) out.error(interrupts.timedOut.toObject());
    if (options.verbose) out.note(`conversation: ${runAgent.agent.conversation.id}`);
    return interrupts.exitCode ?? exitCode;
  } finally {
    await runAgent?.close();
    await hub.close();
  }
}

/** Otherwise the model would only be told that there is an image. */
function refuseUnseen(prompt: readonly ContentBlock[] | undefined, { id, images }: ChatModel): void {
  if (images || prompt?.some(({ type }) => type === "image") !== true) return;
  throw new ToolcribError("invalid_arguments", `${id} does not support images.`, {
    hint: 'Choose another one with --model. If it does support images, define it in the config as an endpoint with "images": true.',
  });
}
