/** A tiny text classifier in the ONNX format, written byte by byte: it is sure of an attack where a token is among its input. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

type Field = Buffer;

function varint(value: number | bigint): Buffer {
  let left = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  while (left > 127n) {
    bytes.push(Number(left & 127n) | 128);
    left >>= 7n;
  }
  return Buffer.from([...bytes, Number(left)]);
}

const int = (field: number, value: number): Field => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field: number, value: Buffer): Field =>
  Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);
const text = (field: number, value: string): Field => bytes(field, Buffer.from(value));
const message = (field: number, ...fields: Field[]): Field => bytes(field, Buffer.concat(fields));

const FLOAT = 1;
const INT64 = 7;

function node(type: string, inputs: readonly string[], output: string, ...attributes: Field[]): Field {
  return message(1, ...inputs.map((name) => text(1, name)), text(2, output), text(4, type), ...attributes);
}

const intAttribute = (name: string, value: number): Field => message(5, text(1, name), int(3, value), int(20, 2));
const intsAttribute = (name: string, value: number): Field => message(5, text(1, name), int(8, value), int(20, 7));

function tensor(name: string, type: number, dims: readonly number[], data: Buffer): Field {
  return message(5, ...dims.map((dim) => int(1, dim)), int(2, type), text(8, name), bytes(9, data));
}

function value(field: number, name: string, type: number, second: Field): Field {
  const shape = message(2, message(1, int(1, 1)), message(1, second));
  return message(field, text(1, name), message(2, message(1, int(1, type), shape)));
}

/** The outputs are [10, -10], and [-10, 10] where the token is in the input. */
export function modelWith(token: number): Buffer {
  const weights = Buffer.from(new Float32Array([-20, 20]).buffer);
  const bias = Buffer.from(new Float32Array([10, -10]).buffer);
  const graph = message(
    7,
    node("Equal", ["input_ids", "token"], "same"),
    node("Cast", ["same"], "found", intAttribute("to", FLOAT)),
    node("ReduceMax", ["found"], "any", intsAttribute("axes", 1), intAttribute("keepdims", 1)),
    node("Gemm", ["any", "weights", "bias"], "logits"),
    text(2, "tiny"),
    tensor("token", INT64, [1], Buffer.from(BigInt64Array.of(BigInt(token)).buffer)),
    tensor("weights", FLOAT, [1, 2], weights),
    tensor("bias", FLOAT, [2], bias),
    value(11, "input_ids", INT64, text(2, "length")),
    value(12, "logits", FLOAT, int(1, 2)),
  );
  return Buffer.concat([int(1, 8), graph, message(8, text(1, ""), int(2, 13))]);
}

/** A tokenizer.json whose words are these; others are token 0. */
export function tokenizerOf(words: readonly string[]): object {
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: [],
    normalizer: { type: "Lowercase" },
    pre_tokenizer: { type: "Whitespace" },
    post_processor: null,
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      type: "WordPiece",
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(["[UNK]", ...words].map((word, index) => [word, index])),
    },
  };
}

const RUNTIME = "onnxruntime-node@1.30.0";

/**
 * The path of the package that runs models. It is far too large for the packages of the repo, so it is fetched into `.dev` once.
 * Its install script would fetch libraries for graphics cards from elsewhere.
 */
export async function findOnnxRuntime(): Promise<{ path: string } | { missing: string }> {
  const dir = resolve(import.meta.dirname, "../../../.dev/onnxruntime");
  const path = join(dir, "node_modules/onnxruntime-node/dist/index.js");
  if (existsSync(path)) return { path };
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, "package.json"), JSON.stringify({ private: true }));
  try {
    const npm = process.env["npm_execpath"];
    const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", RUNTIME];
    const run = promisify(execFile);
    const options = { cwd: dir, timeout: 120_000, killSignal: "SIGKILL" } as const;
    await (npm === undefined ? run("npm", args, options) : run(process.execPath, [npm, ...args], options));
  } catch {
    return { missing: `${RUNTIME} cannot be installed` };
  }
  return existsSync(path) ? { path } : { missing: `${RUNTIME} has no ${path}` };
}
