/** The agent for editors over stdio. Nothing but the protocol goes to stdout, and nothing is left when it ends. */
import { appendFileSync } from "node:fs";
import { resolve } from "node:path";
import { type AcpDoorOptions, serveAcp } from "../../doors/acp/serve-acp.ts";
import { createHub } from "../../hub/create.ts";
import type { Hub } from "../../hub/hub.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { Log } from "../../telemetry/log.ts";
import { killGroups } from "../../upstream/stdio/live-children.ts";
import { claimStdout } from "../acp/claimed-stdout.ts";
import { refuseClient } from "../acp/refuse-client.ts";
import { closeInTime, type StopSignal, stopSignal } from "../acp/stop-signal.ts";
import type { Invocation } from "../command.ts";
import { loadForCommand } from "../command-config.ts";
import { exitCodeOf } from "../exit-code.ts";
import { noteRequest, tidyUp } from "../lean-start.ts";
import { chosenModel } from "../run/chosen-model.ts";
import { modeOf } from "../run/run-options.ts";
import { logFor, logHubEvents, logWarnings } from "../serve/hub-log.ts";

/** A server that does not end by itself would be waited for longer than the client waits for us, which is five seconds. */
const KILLING_MS = 2500;
const CLOSING_MS = 4000;

export async function run(invocation: Invocation): Promise<number> {
  const { stdin: input, out } = invocation;
  const stopped = stopSignal();
  const claimed = claimStdout();
  const giveUp = (): void => {
    out.labelled("red", "error:", "Closing took too long; what is left is given up.");
    process.exit(stopped.exitCode ?? 1);
  };
  const steps = { [KILLING_MS]: killGroups, [CLOSING_MS]: giveUp };
  const inTime = closeInTime({ signal: stopped.signal, input, steps });
  try {
    return await serve(invocation, claimed.output, stopped);
  } finally {
    await claimed.release();
    inTime();
    stopped.dispose();
  }
}

async function serve(invocation: Invocation, output: AcpDoorOptions["output"], stopped: StopSignal): Promise<number> {
  const { stdin, out, env, flags } = invocation;
  let agent: Prepared;
  try {
    agent = await prepare(invocation);
  } catch (thrown) {
    const error = asToolcribError(thrown).toObject();
    out.error(error);
    await refuseClient(stdin, output, out.redactor.maskAll(error), stopped.signal);
    return stopped.exitCode ?? exitCodeOf(error.code);
  }
  const { hub, log, model, mode } = agent;
  try {
    await serveAcp({
      hub,
      input: stdin,
      output,
      env,
      model,
      mode,
      role: flags.text("role"),
      signal: stopped.signal,
      followConfig: true,
      log: (message) => log.warn(message),
    });
    return stopped.exitCode ?? 0;
  } finally {
    await hub.close();
  }
}

interface Prepared {
  readonly hub: Hub;
  readonly log: Log;
  readonly model: AcpDoorOptions["model"];
  readonly mode: AcpDoorOptions["mode"];
}

async function prepare(invocation: Invocation): Promise<Prepared> {
  const { flags, env, out, cwd } = invocation;
  const file = flags.text("logFile");
  const log = logFor(invocation, file === undefined ? undefined : fileWriter(resolve(cwd, file)));
  const mode = flags.text("mode");
  const chosen = { mode: mode === undefined ? undefined : modeOf(mode) };
  const config = await loadForCommand(invocation, { asks: false });
  const given = flags.text("model");
  // Without one it starts all the same: the client is told when it wants to authenticate or to prompt.
  const model = given === undefined ? undefined : chosenModel(config.config.agent, given);
  const hub = await createHub(config, { wait: false, rootsOnRequest: true, door: "acp", env, redactor: out.redactor });
  logWarnings(hub, log);
  logHubEvents(hub, log);
  hub.on("call", noteRequest);
  void hub.settled().then(tidyUp);
  return { hub, log, model, ...chosen };
}

function fileWriter(path: string): (line: string) => void {
  const write = (line: string): void => appendFileSync(path, line, { mode: 0o600 });
  try {
    write("");
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `--log-file ${path} cannot be written.`, { cause: error });
  }
  return write;
}
