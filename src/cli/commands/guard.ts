import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { excerptOf } from "../../base/visible-text.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { passagesOf, scanText, SENSITIVITIES, type Sensitivity } from "../../guard/scan-text.ts";
import { Detectors, type DetectorVerdict } from "../../hub/detect/detectors.ts";
import { ToolcribError } from "../../model/errors.ts";
import { type Finding, type Place, PLACES, SEVERITIES } from "../../model/finding.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { Secrets } from "../../secrets/secrets.ts";
import { loadCommandConfigQuietly } from "../command-config.ts";
import { type Invocation, unknownAction } from "../command.ts";
import type { Column } from "../table.ts";

const MAX_BYTES = 64 * 1024 * 1024;

interface MatchRow {
  readonly passage: number;
  readonly score: number;
  readonly rule: string;
  readonly code: string;
  readonly weight: number;
  readonly start: number;
  readonly end: number;
  readonly excerpt: string;
}

const COLUMNS: readonly Column<MatchRow>[] = [
  { title: "SCORE", cell: ({ score }) => score.toFixed(1) },
  { title: "RULE", cell: ({ rule }) => rule },
  { title: "CODE", cell: ({ code }) => code },
  { title: "WEIGHT", cell: ({ weight }) => weight.toFixed(1) },
  { title: "AT", cell: ({ start }) => String(start) },
  { title: "TEXT", cell: ({ excerpt }) => excerpt, shrink: true },
];

/** `guard test <file|->`: how the guard judges a text, and which rules matched. */
export async function run(invocation: Invocation): Promise<number> {
  const [action, file = ""] = invocation.args;
  if (action !== "test") throw unknownAction("guard", action ?? "", "Use toolcrib guard test <file>.");
  const { out, flags } = invocation;
  const place = chosen<Place>(flags.text("place") ?? "result", PLACES, "--place");
  const config = await loadCommandConfigQuietly(invocation);
  const wanted = flags.text("sensitivity") ?? config.config.guard.sensitivity;
  const sensitivity = chosen<Sensitivity>(wanted, SENSITIVITIES, "--sensitivity");
  const text = await readText(invocation, file);
  const detected = await detectorVerdicts(invocation, config, text, { place, sensitivity });
  const findings = [...scanText(text, { place, sensitivity }), ...detected.flatMap(({ findings: found }) => found)];
  const { verdict, score } = worstOf(findings);
  const matches = matchesIn(text);
  const detectors = detected.map(({ name, state, findings: found }) => ({ name, state, ...worstOf(found) }));
  if (out.json) {
    out.value({ place, sensitivity, verdict, score, findings, matches, detectors });
    return 0;
  }
  const codes = [...new Set(findings.map(({ code }) => code))].join(", ");
  out.line(`${out.paint("bold", verdict)}, score ${score.toFixed(1)} of 10, as ${place} at ${sensitivity} sensitivity`);
  if (codes !== "") out.line(codes);
  for (const each of detectors) {
    const said = each.state === "answered" ? `${each.verdict}, score ${each.score.toFixed(1)}` : STATES[each.state];
    out.line(`detector ${each.name}: ${said}`);
  }
  if (matches.length === 0) {
    out.line("No rule matched.");
    return 0;
  }
  out.line("");
  out.table(COLUMNS, matches);
  return 0;
}

const STATES = { failed: "failed", "not asked": "does not read texts of this place" } as const;

function worstOf(findings: readonly Finding[]): { readonly verdict: string; readonly score: number } {
  return {
    verdict: SEVERITIES.findLast((level) => findings.some(({ severity }) => severity === level)) ?? "none",
    score: findings.reduce((most, finding) => Math.max(most, finding.score), 0),
  };
}

/** Of the detectors of the config, as a hub would ask them. */
async function detectorVerdicts(
  invocation: Invocation,
  config: LoadedConfig,
  text: string,
  options: { readonly place: Place; readonly sensitivity: Sensitivity },
): Promise<DetectorVerdict[]> {
  const { env, out } = invocation;
  if (config.config.guard.detectors.length === 0) return [];
  const { redactor } = out;
  const secrets = new Secrets({ env, home: toolcribHome(env), redactor, exec: config.config.secrets.exec });
  const detectors = new Detectors({
    clock: systemClock,
    resolve: async (reference, baseDir) => (await secrets.resolve(reference, { baseDir })).value,
    mask: redactor.maskContent,
    warn: (message) => out.warn(message),
  });
  try {
    await detectors.prepare(config);
    return await detectors.verdictsOn(text, config, options);
  } finally {
    detectors.close();
  }
}

function matchesIn(text: string): MatchRow[] {
  return passagesOf(text).flatMap(({ score, matches }, passage) =>
    matches.map(({ rule, kind, weight, start, end }) => {
      return { passage, score, rule, code: kind, weight, start, end, excerpt: excerptOf(text, start, end) };
    }),
  );
}

function chosen<Name extends string>(given: string, known: readonly Name[], option: string): Name {
  const name = known.find((each) => each === given);
  if (name !== undefined) return name;
  throw new ToolcribError("invalid_arguments", `${option} is not one of the known values: ${given}.`, {
    hint: `Use one of: ${known.join(", ")}.`,
  });
}

async function readText({ stdin, cwd }: Invocation, file: string): Promise<string> {
  if (file !== "-") {
    try {
      const bytes = await readFile(resolve(cwd, file));
      return bytes.subarray(0, MAX_BYTES).toString("utf8");
    } catch (cause) {
      throw new ToolcribError("not_found", `The file ${file} cannot be read.`, {
        hint: "Name a text file, or - for standard input.",
        cause,
      });
    }
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk as Uint8Array | string);
    length += bytes.length;
    chunks.push(bytes);
    if (length > MAX_BYTES) break;
  }
  return Buffer.concat(chunks).toString("utf8");
}
