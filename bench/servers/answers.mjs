// @ts-check
/**
 * What the hand-written echo server answers, over whichever transport. Plain JavaScript, so that starting one costs what a
 * server costs and not what stripping types does. Knows the legacy era only: gateways negotiate down to it.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const PROSE =
  "The committee met on Tuesday to look at the figures for the third quarter. Sales in the north had grown, while those " +
  "in the south stood still; nobody could say why. A report of twelve pages was handed round, and two of its tables did " +
  "not agree. It was decided to ask the auditors, and to meet again in a fortnight with better numbers.\n";

const HARMLESS = { readOnlyHint: true, openWorldHint: false };
/** Nobody may run such a call a second time. */
const HAS_EFFECTS = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false };

/**
 * @typedef {{ id?: string | number, method?: string, params?: any }} Message
 * @typedef {object} EchoOptions
 * @property {number} tools
 * @property {string} name
 * @property {string} [log] File that gets a line for each call, so that a call which ran twice is noticed.
 * @property {number} [lifeMs] About how long it lives before it dies by itself.
 */

/** `--tools=<n> --name=<text> --log=<file> --life=<ms>` @returns {EchoOptions} */
export function optionsFromArguments(args = process.argv.slice(2)) {
  const value = (/** @type {string} */ name) =>
    args.find((one) => one.startsWith(`--${name}=`))?.slice(name.length + 3);
  const [log, life] = [value("log"), value("life")];
  return {
    tools: Number(value("tools") ?? 1),
    name: value("name") ?? "echo",
    ...(log === undefined ? {} : { log }),
    ...(life === undefined ? {} : { lifeMs: Number(life) }),
  };
}

/** @param {EchoOptions} options */
export function makeAnswers({ tools, name, log, lifeMs }) {
  const annotations = log === undefined ? HARMLESS : HAS_EFFECTS;
  const names = Array.from({ length: tools }, (_, index) => (index === 0 ? "echo" : `echo_${index}`));
  const listed = { tools: names.map((one) => ({ ...definition(one), annotations })) };
  const texts = new Map();
  if (lifeMs !== undefined) setTimeout(() => process.exit(1), lifeMs * (0.5 + Math.random())).unref();

  /** A result, or a promise of one; undefined if there is no such method. @param {Message} message */
  return ({ method, params }) => {
    switch (method) {
      case "tools/call":
        return call(params);
      case "tools/list":
        return listed;
      case "initialize":
        return {
          protocolVersion: params?.protocolVersion ?? "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name, version: "1.0.0" },
        };
      case "ping":
        return {};
      default:
        return undefined;
    }
  };

  /** @param {{ arguments?: Record<string, any> }} params */
  function call({ arguments: args = {} }) {
    if (log !== undefined) appendFileSync(log, `${String(args.text).slice(0, 100)}\n`);
    if (args.crash) process.exit(1);
    const result = () => ({
      content: [{ type: "text", text: args.bytes ? textOf(args.kind ?? "x", args.bytes) : String(args.text ?? "") }],
    });
    return args.delayMs ? sleep(args.delayMs).then(result) : result();
  }

  /** Made once: the floor is what carrying it costs. @param {string} kind @param {number} bytes */
  function textOf(kind, bytes) {
    const key = `${kind} ${bytes}`;
    const known = texts.get(key);
    if (known !== undefined) return known;
    const piece = kind === "prose" ? PROSE : kind === "json" ? '{"id":1042,"name":"north","open":true},\n' : "x";
    const text = piece.repeat(Math.ceil(bytes / piece.length)).slice(0, bytes);
    texts.set(key, text);
    return text;
  }
}

/** @param {string} name */
function definition(name) {
  return {
    name,
    title: `Echo ${name}`,
    description: "Gives back the text that it is given, or as many bytes of text as are asked for.",
    inputSchema: {
      type: "object",
      properties: {
        text: { type: "string", description: "What to give back" },
        bytes: { type: "integer", description: "How many bytes of text to give instead" },
        kind: { type: "string", enum: ["x", "prose", "json"] },
        delayMs: { type: "number" },
        crash: { type: "boolean" },
      },
    },
  };
}
