/**
 * What a detector of the config asks: a service, a model in the ONNX format (such as Prompt Guard), or a function. The packages
 * that run a model are large and optional, so they are loaded when one is configured. Tokenizers come in many forms, which
 * `@huggingface/tokenizers` reads: it is plain JavaScript without dependencies.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { mapLimit } from "../../base/async.ts";
import type { DetectorEntry } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { FINDING_CODES, type FindingCode, type Place } from "../../model/finding.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../model/json.ts";
import { loadOptional } from "../../base/optional-package.ts";
import { checkRemoteAddress } from "../../upstream/http/address-policy.ts";
import { HttpClient } from "../../upstream/http/http-client.ts";
import { isSuccess, readText, responseError } from "../../upstream/http/response-body.ts";

/** The verdict on a text or on a part of it: how surely, from 0 to 1, it is an attack. */
export interface Verdict {
  readonly score: number;
  readonly code?: FindingCode;
  /** The part; the whole text if absent. */
  readonly start?: number;
  readonly end?: number;
}

interface ClassifyContext {
  readonly place: Place;
  /** Aborts when the time is up. */
  readonly signal: AbortSignal;
}

/** The verdicts on each text, in their order. */
type Classify = (texts: readonly string[], context: ClassifyContext) => Promise<readonly (readonly Verdict[])[]>;

export interface Classifier {
  readonly classify: Classify;
  /** For one that reads text by text: how many at a time. It is given one in each call. */
  readonly atOnce?: number;
  close?(): void | Promise<void>;
}

interface OpenOptions {
  readonly name: string;
  /** Paths are relative to this folder. */
  readonly baseDir: string;
  /** The value of a reference, which is masked from then on. */
  readonly resolve: (reference: string, baseDir: string) => Promise<string>;
}

/** Throws `invalid_config` for one that cannot be used. */
export async function openClassifier(
  entry: DetectorEntry,
  { name, baseDir, resolve: resolveToken }: OpenOptions,
): Promise<Classifier> {
  try {
    switch (entry.type) {
      case "http":
        return httpClassifier(entry, (reference) => resolveToken(reference, baseDir));
      case "onnx":
        return await openOnnxClassifier(entry, baseDir);
      case "module":
        return await loadFunction(resolve(baseDir, entry.path));
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const hint = error instanceof ToolcribError ? error.hint : undefined;
    throw new ToolcribError("invalid_config", `guard.detectors, ${name}: ${message}`, { hint, cause: error });
  }
}

type HttpEntry = Extract<DetectorEntry, { type: "http" }>;

const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Requests at once, where each has one text. */
const MAX_REQUESTS = 4;

function httpClassifier(entry: HttpEntry, resolveToken: (reference: string) => Promise<string>): Classifier {
  const url = checkRemoteAddress(entry.url, undefined, entry.allowHttp);
  const client = new HttpClient();
  const post = async (body: unknown, signal: AbortSignal): Promise<unknown> => {
    const token = entry.token === undefined ? undefined : await resolveToken(entry.token);
    const headers = {
      "content-type": "application/json",
      accept: "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const response = await client.request({ method: "POST", url, headers, body: JSON.stringify(body), signal });
    if (!isSuccess(response)) {
      const error = await responseError(response);
      throw REFUSALS.includes(response.status) ? new Refused(error.message, { cause: error }) : error;
    }
    return parseJson(await readText(response.body, url, MAX_ANSWER_BYTES));
  };
  const isAttack = attackTest(entry.attackLabels);
  const close = (): void => client.destroy();
  if (entry.format === "toolcrib") {
    const classify: Classify = async (texts, { place, signal }) => {
      const answer = await post({ place, texts }, signal);
      const results: unknown = isJsonObject(answer) ? answer["results"] : undefined;
      if (!Array.isArray(results)) throw new Error("its answer has no list of results");
      return results.map(verdictsOf);
    };
    return { classify, close };
  }
  const readPart = async (text: string, { start, end }: Part, signal: AbortSignal): Promise<Verdict[]> => {
    try {
      const answer = await post({ inputs: text.slice(start, end), truncate: false }, signal);
      return [{ score: scoreOfLabels(answer, isAttack), start, end }];
    } catch (error) {
      // It may have more tokens than the model reads.
      if (!(error instanceof Refused) || end - start <= MIN_PART || signal.aborted) throw error;
      const middle = (start + end) >>> 1;
      const overlap = (end - start) >>> 3;
      return [
        ...(await readPart(text, { start, end: middle + overlap }, signal)),
        ...(await readPart(text, { start: middle - overlap, end }, signal)),
      ];
    }
  };
  const readWhole = async (text: string, signal: AbortSignal): Promise<Verdict[]> => {
    const failures: unknown[] = [];
    const read = await mapLimit(partsOf(text), MAX_REQUESTS, (part) =>
      readPart(text, part, signal).catch((error: unknown): Verdict[] => {
        failures.push(error);
        return [];
      }),
    );
    const verdicts = read.flat();
    // A part that it fails on does not take back what it found in another.
    if (failures.length > 0 && !verdicts.some(({ score }) => score >= entry.threshold)) throw failures[0];
    return verdicts;
  };
  return {
    classify: (texts, { signal }) => Promise.all(texts.map((text) => readWhole(text, signal))),
    atOnce: MAX_REQUESTS,
    close,
  };
}

/** Answers to a text that is longer than the service reads. */
const REFUSALS: readonly number[] = [400, 413, 422];

class Refused extends Error {}

interface Part {
  readonly start: number;
  readonly end: number;
}

/** A service for a transformer reads some hundred tokens at once, and what is cut off would count as clean. */
const PART_LENGTH = 1500;
const PART_OVERLAP = 200;
const MIN_PART = 100;

function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  for (let start = 0; start === 0 || start + PART_OVERLAP < text.length; start += PART_LENGTH - PART_OVERLAP)
    parts.push({ start, end: Math.min(text.length, start + PART_LENGTH) });
  return parts;
}

/** `[{ label, score }, …]`, in one more list where the service answers batches. */
function scoreOfLabels(answer: unknown, isAttack: (label: string) => boolean): number {
  const [first]: unknown[] = Array.isArray(answer) ? answer : [];
  const labels: unknown[] = Array.isArray(first) ? first : Array.isArray(answer) ? answer : [];
  const scored = labels.filter(isJsonObject);
  if (scored.length === 0) throw new Error("its answer has no labels");
  return scored.reduce((sum, { label, score }) => {
    const counts = typeof label === "string" && typeof score === "number" && isAttack(label);
    return counts ? sum + score : sum;
  }, 0);
}

const ATTACK_LABEL = /inject|jailbreak|attack|malicious|unsafe|^label_1$/i;

function attackTest(labels: readonly string[] | undefined): (label: string) => boolean {
  return labels === undefined ? (label) => ATTACK_LABEL.test(label) : (label) => labels.includes(label);
}

async function loadFunction(file: string): Promise<Classifier> {
  if (!existsSync(file))
    throw new ToolcribError("invalid_config", `the file ${file} does not exist.`, {
      hint: "Paths of detectors are relative to the config file.",
    });
  const module: unknown = await import(pathToFileURL(file).href);
  const exported: unknown = isJsonObject(module) ? module["default"] : undefined;
  if (typeof exported !== "function")
    throw new ToolcribError("invalid_config", `the default export of ${file} is not a function.`, {
      hint: "It gets a list of texts and { place, signal }, and returns a verdict for each.",
    });
  return {
    classify: async (texts, context) => {
      // The result of a function of someone else may be anything.
      const answer: unknown = await (exported as (...given: unknown[]) => unknown)(texts, context);
      if (!Array.isArray(answer)) throw new Error("its function did not return a list");
      return answer.map(verdictsOf);
    },
  };
}

/** Of one text, as services and functions write it: nothing, a score, `{ score, kind?, start?, end? }`, or a list of these. */
function verdictsOf(value: unknown): readonly Verdict[] {
  if (value === null || value === undefined || value === false) return [];
  if (Array.isArray(value)) return value.flatMap(verdictsOf);
  if (typeof value === "number") return [{ score: checkedScore(value) }];
  if (!isJsonObject(value)) throw new Error("a verdict is neither a score nor an object with one");
  const { score, kind, start, end } = value;
  const code = FINDING_CODES.find((known) => known === kind);
  const isSpan = Number.isInteger(start) && Number.isInteger(end);
  return [
    {
      score: checkedScore(score),
      ...(code === undefined ? {} : { code }),
      ...(isSpan ? { start: Number(start), end: Number(end) } : {}),
    },
  ];
}

function checkedScore(score: unknown): number {
  if (typeof score === "number" && score >= 0 && score <= 1) return score;
  throw new Error("a score is not a number from 0 to 1");
}

// Models.

type OnnxEntry = Extract<DetectorEntry, { type: "onnx" }>;

/** The used part of `onnxruntime-node` and `onnxruntime-web`. */
interface Runtime {
  readonly InferenceSession: { create(model: string | Uint8Array): Promise<InferenceSession> };
  readonly Tensor: new (type: "int64", data: BigInt64Array, dims: readonly number[]) => object;
}

interface InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  run(inputs: Readonly<Record<string, object>>): Promise<Readonly<Record<string, { readonly data: unknown }>>>;
  release(): Promise<void>;
}

/** The used part of `@huggingface/tokenizers`. */
interface Tokenizers {
  readonly Tokenizer: new (
    tokenizer: JsonObject,
    config: JsonObject,
  ) => { encode(text: string): { readonly ids: readonly number[] } };
}

const TOKENIZERS = "@huggingface/tokenizers";
/** Of a window, before it is known how many tokens it has. */
const CHARACTERS_PER_TOKEN = 4;
/** Windows overlap, so that nothing hides at a border. */
const OVERLAP = 120;

async function openOnnxClassifier(entry: OnnxEntry, baseDir: string): Promise<Classifier> {
  const [runtime, { Tokenizer }] = [await loadRuntime(entry.runtime, baseDir), await loadTokenizers()];
  const model = resolve(baseDir, entry.model);
  const tokenizerFile = resolve(baseDir, entry.tokenizer);
  const tokenizer = new Tokenizer(
    await readJson(tokenizerFile, "tokenizer"),
    await readJson(join(dirname(tokenizerFile), "tokenizer_config.json"), "tokenizer").catch(() => ({})),
  );
  // Weights that are in files of their own are found by the path.
  const source = entry.runtime === "onnxruntime-node" ? model : await readFile(model).catch(() => model);
  const session = await runtime.InferenceSession.create(source).catch((error: unknown) => {
    throw invalid(`the model ${model} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  });
  const isAttack = attackIndexes(entry);
  const scoreOf = async (ids: readonly number[]): Promise<number> => {
    const inputs = session.inputNames.map((name) => {
      const data = BigInt64Array.from(ids, (id) =>
        name === "input_ids" ? BigInt(id) : name === "attention_mask" ? 1n : 0n,
      );
      return [name, new runtime.Tensor("int64", data, [1, ids.length])] as const;
    });
    const outputs = await session.run(Object.fromEntries(inputs));
    const name = session.outputNames.includes("logits") ? "logits" : (session.outputNames[0] ?? "");
    const data = outputs[name]?.data;
    if (!(data instanceof Float32Array)) throw new Error("the model's first output is not a list of floats");
    return attackShare(data, isAttack);
  };
  const windowLength = entry.maxTokens * CHARACTERS_PER_TOKEN;
  const verdictsOn = async (text: string, signal: AbortSignal): Promise<Verdict[]> => {
    const verdicts: Verdict[] = [];
    const pending: { start: number; end: number }[] = [];
    for (let start = 0; start === 0 || start + OVERLAP < text.length; start += windowLength - OVERLAP)
      pending.push({ start, end: Math.min(text.length, start + windowLength) });
    for (let window = pending.shift(); window !== undefined; window = pending.shift()) {
      if (signal.aborted) break;
      const { start, end } = window;
      const { ids } = tokenizer.encode(text.slice(start, end));
      if (ids.length > entry.maxTokens && end - start > 2 * OVERLAP) {
        const middle = (start + end) >>> 1;
        pending.unshift({ start, end: middle + OVERLAP / 2 }, { start: middle - OVERLAP / 2, end });
        continue;
      }
      verdicts.push({ score: await scoreOf(ids.slice(0, entry.maxTokens)), start, end });
    }
    return verdicts;
  };
  return {
    classify: async (texts, { signal }) => {
      const verdicts: Verdict[][] = [];
      for (const text of texts) verdicts.push(await verdictsOn(text, signal));
      return verdicts;
    },
    // Not every build can run one session twice at a time.
    atOnce: 1,
    close: () => session.release().catch(() => {}),
  };
}

function attackIndexes({ labels, attackLabels }: OnnxEntry): (index: number) => boolean {
  if (labels === undefined) return (index) => index > 0;
  const isAttack = attackTest(attackLabels);
  return (index) => isAttack(labels[index] ?? "");
}

/** The share of the outputs that mean an attack; one output alone is the attack's. */
function attackShare(outputs: Float32Array, isAttack: (index: number) => boolean): number {
  if (outputs.length === 1) return 1 / (1 + Math.exp(-(outputs[0] ?? 0)));
  const most = Math.max(...outputs);
  let all = 0;
  let attack = 0;
  for (const [index, output] of outputs.entries()) {
    const share = Math.exp(output - most);
    all += share;
    if (isAttack(index)) attack += share;
  }
  const score = attack / all;
  if (!Number.isFinite(score)) throw new Error("the model's outputs are not numbers");
  return score;
}

async function loadRuntime(name: string, baseDir: string): Promise<Runtime> {
  const isPath = name.startsWith(".") || isAbsolute(name);
  const specifier = isPath ? pathToFileURL(resolve(baseDir, name)).href : name;
  const module = await loadOptional<unknown>(name, () => import(specifier));
  if (module === undefined) throw missing(name);
  const runtime = isJsonObject(module) && isJsonObject(module["default"]) ? module["default"] : module;
  if (!isJsonObject(runtime) || runtime["InferenceSession"] === undefined)
    throw invalid(`the package ${name} does not run ONNX models.`);
  // It has the classes of onnxruntime, whichever build it is.
  return runtime as unknown as Runtime;
}

async function loadTokenizers(): Promise<Tokenizers> {
  const module = await loadOptional(TOKENIZERS, () => import("@huggingface/tokenizers"));
  if (module === undefined) throw missing(TOKENIZERS);
  return module;
}

async function readJson(file: string, what: string): Promise<JsonObject> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw invalid(`the ${what} ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isJsonObject(value)) throw invalid(`the ${what} ${file} is not a JSON object.`);
  return value;
}

function missing(name: string): ToolcribError {
  return new ToolcribError("invalid_config", `it runs an ONNX model, and the package "${name}" is not installed.`, {
    hint: `Run \`npm install onnxruntime-node ${TOKENIZERS}\` beside Toolcrib, with -g if Toolcrib is installed so.`,
  });
}

function invalid(message: string): ToolcribError {
  return new ToolcribError("invalid_config", message);
}
