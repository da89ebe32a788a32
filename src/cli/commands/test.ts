/** `toolcrib test`: checks before anything depends on a server that it starts, has the tools it should have, and runs them. */
import { nearMatches } from "../../base/near-matches.ts";
import { resultText } from "../../model/content.ts";
import { asToolcribError, type ErrorObject, ToolcribError } from "../../model/errors.ts";
import { type JsonObject, parseJsonObject } from "../../model/json.ts";
import { loadCommandConfigQuietly, unknownServer } from "../command-config.ts";
import { exitCodeOf, type Invocation } from "../command.ts";
import { type RunningHub, showAnswers, withHub } from "../running-hub.ts";
import { counted } from "../table.ts";

interface Check {
  readonly check: string;
  readonly ok: boolean;
  readonly ms: number;
  readonly error?: ErrorObject;
}

interface WantedCall {
  readonly tool: string;
  readonly arguments: JsonObject;
}

export function run(invocation: Invocation): Promise<number> {
  const { args, flags, out } = invocation;
  const [server = ""] = args;
  const calls = flags.list("call").map(parseCall);
  return withHub(invocation, async (running) => {
    const checks: Check[] = [];
    const isOk = async (check: string, work: () => Promise<string | undefined>): Promise<boolean> => {
      const started = performance.now();
      const error = await work().then(
        (shown) => void (out.json || out.line(`ok      ${shown ?? check}`)),
        (thrown: unknown) => asToolcribError(thrown).toObject(),
      );
      checks.push({ check, ok: error === undefined, ms: Math.round(performance.now() - started), error });
      if (error !== undefined && !out.json) {
        out.line(`failed  ${check}: ${error.message}`);
        if (error.hint !== undefined) out.note(`  ${error.hint}`);
      }
      return error === undefined;
    };
    const isUp = await isOk(`${server} connects`, () => connect(running, server));
    if (isUp) {
      for (const name of flags.list("tool"))
        await isOk(`it has ${name}`, async () => void publicName(running, server, name));
      for (const call of calls) await isOk(`${call.tool} runs`, () => runTool(running, server, call));
    }
    const failed = checks.find(({ ok }) => !ok);
    if (out.json) out.value({ server, ok: failed === undefined, checks: out.redactor.maskAll(checks) });
    return failed?.error === undefined ? 0 : exitCodeOf(failed.error.code);
  });
}

export type TriedServer =
  | { readonly ok: true; readonly tools: number; readonly ms: number }
  | { readonly ok: false; readonly error: ErrorObject };

/** Starts one server of the config and asks for its tools. */
export async function tryServer(invocation: Invocation, server: string): Promise<TriedServer> {
  let tried: TriedServer | undefined;
  try {
    const config = await loadCommandConfigQuietly(invocation);
    const use = async (running: RunningHub): Promise<number> => {
      running.connect([server]);
      await showAnswers(invocation.out, running);
      const down = running.unreachable().find(({ info }) => info.id === server);
      if (down !== undefined) {
        throw new ToolcribError("server_unavailable", down.reason, { hint: down.info.hint });
      }
      const tools = running.servers().find(({ id }) => id === server)?.toolCount ?? 0;
      tried = { ok: true, tools, ms: running.took.get(server) ?? 0 };
      return 0;
    };
    await withHub(invocation, use, { config, onWarning: () => {} });
  } catch (error) {
    tried = { ok: false, error: invocation.out.redactor.maskAll(asToolcribError(error).toObject()) };
  }
  // Undefined after a signal.
  return tried ?? { ok: false, error: new ToolcribError("cancelled", "The test was interrupted.").toObject() };
}

/** `tool`, or `tool={"key": "value"}`. */
function parseCall(text: string): WantedCall {
  const at = text.indexOf("=");
  if (at === -1) return { tool: text, arguments: {} };
  const given = parseJsonObject(text.slice(at + 1));
  if (given !== undefined) return { tool: text.slice(0, at), arguments: given };
  throw new ToolcribError("invalid_arguments", `--call ${text.slice(0, at)}: the arguments are not a JSON object.`, {
    hint: `Write --call '${text.slice(0, at)}={"key": "value"}'.`,
  });
}

async function connect(running: RunningHub, server: string): Promise<string> {
  const known = running.servers();
  if (!known.some(({ id }) => id === server)) throw unknownServer(server, known);
  await running.connectOne(server);
  const info = running.servers().find(({ id }) => id === server);
  return `${server} connects: ${counted(info?.toolCount ?? 0, "tool")}, ${running.took.get(server) ?? 0} ms`;
}

/** Of a tool that the session may see, by its own name at the server or its public one. */
function publicName({ hub, session }: RunningHub, server: string, name: string): string {
  const tools = hub.view(session).tools.filter(({ origin }) => origin.source === server);
  const found = tools.find((tool) => tool.name === name || tool.origin.name === name);
  if (found !== undefined) return found.name;
  const near = nearMatches(
    name,
    tools.map(({ origin }) => origin.name),
  );
  throw new ToolcribError("not_found", `${server} has no tool ${name}, or a rule hides it.`, {
    hint: near.length === 0 ? `Run toolcrib list ${server}.` : `Did you mean ${near.join(" or ")}?`,
  });
}

async function runTool(running: RunningHub, server: string, call: WantedCall): Promise<undefined> {
  const { hub, session, signal } = running;
  const name = publicName(running, server, call.tool);
  const outcome = await hub.call({ session, name, arguments: call.arguments, signal });
  if (!outcome.ok) throw new ToolcribError(outcome.error.code, outcome.error.message, { hint: outcome.error.hint });
  if (outcome.result.isError === true) throw new ToolcribError("tool_error", resultText(outcome.result).slice(0, 500));
}
