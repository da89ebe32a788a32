/** Detection of suspicious content: read once, ask every detector, report each place once. */
import { type Finding, isAtLeast, SEVERITIES } from "../../model/finding.ts";
import { agentDirective } from "./agent-directive.ts";
import { bidiText } from "./bidi-text.ts";
import { concealment } from "./concealment.ts";
import { credentialRequest } from "./credential-request.ts";
import type { Detector, Suspicion } from "./detector.ts";
import { encodedPayload } from "./encoded-payload.ts";
import { exfiltrationLink } from "./exfiltration-link.ts";
import { exfiltrationRequest } from "./exfiltration-request.ts";
import { hiddenText } from "./hidden-text.ts";
import { instructionOverride } from "./instruction-override.ts";
import { type Read, read, readAll } from "./reading.ts";
import { roleForging } from "./role-forging.ts";
import { excerptOf } from "./show-hidden.ts";
import { finish, finishInPieces, type Steps } from "./steps.ts";
import { tagCharacters } from "./tag-characters.ts";
import { terminalEscape } from "./terminal-escape.ts";
import { toolCallForging } from "./tool-call-forging.ts";
import { unescapedInSteps } from "./unescape.ts";

/** What is asked of a text as it stands. */
const PLAIN: readonly Detector[] = [
  instructionOverride,
  agentDirective,
  concealment,
  credentialRequest,
  exfiltrationRequest,
  exfiltrationLink,
  roleForging,
  toolCallForging,
];

/** What is asked of a text's characters. A decoded text is not asked again: bytes look odd without being hostile. */
const CHARACTERS: readonly Detector[] = [hiddenText, bidiText, tagCharacters, terminalEscape];

interface Detection {
  readonly read: Read;
  readonly detectors: readonly Detector[];
}

/** Encodings are unpacked twice at most, and each layer is shorter than the one around it. */
function detection(read: Read): Detection {
  const inTwice = encodedPayload((twice) => isSuspicious(twice, { read, detectors: PLAIN }));
  const inOnce = encodedPayload((once) => isSuspicious(once, { read, detectors: [...PLAIN, inTwice] }));
  return { read, detectors: [...PLAIN, ...CHARACTERS, inOnce] };
}

const SIFTED = detection(read);
const UNSIFTED = detection(readAll);

export const DETECTOR_NAMES: readonly string[] = SIFTED.detectors.map((detector) => detector.name);

/**
 * The suspicious places of a text, in their order. Linear in the length of the text.
 *
 * @example detect("Ignore all previous instructions.")[0]?.code // "instruction_override"
 */
export function detect(text: string): Finding[] {
  return finish(findingsIn(text, SIFTED));
}

/** The same findings by reading every word of the text: what `detect` is tested against. */
export function detectThoroughly(text: string): Finding[] {
  return finish(findingsIn(text, UNSIFTED));
}

/** The same findings, with a pause after every few milliseconds of work; a text below about 64 KiB has none. */
export function detectInSteps(text: string, yieldNow: () => Promise<void>): Promise<Finding[]> {
  return finishInPieces(findingsIn(text, SIFTED), yieldNow);
}

function* findingsIn(text: string, detection: Detection): Steps<Finding[]> {
  const plain = yield* unescapedInSteps(text);
  const found = yield* suspicionsIn(plain?.text ?? text, detection);
  const suspicions =
    plain === undefined
      ? found
      : found.map(({ code, severity, start, end }) => ({
          code,
          severity,
          start: plain.originalAt(start),
          end: plain.originalAt(end),
        }));
  return merged(suspicions).map(({ code, severity, start, end }) => ({
    code,
    severity,
    start,
    end,
    excerpt: excerptOf(text, start, end),
  }));
}

function* suspicionsIn(text: string, { read, detectors }: Detection): Steps<Suspicion[]> {
  if (text.trim() === "") return [];
  const reading = yield* read(text);
  const suspicions: Suspicion[] = [];
  for (const detector of detectors) {
    if (detector.mayFind(reading)) suspicions.push(...(yield* detector.find(reading)));
  }
  return suspicions;
}

function* isSuspicious(text: string, detection: Detection): Steps<boolean> {
  const suspicions = yield* suspicionsIn(text, detection);
  return suspicions.some(({ severity }) => isAtLeast(severity, "medium"));
}

/** Overlapping suspicions of one code become one, as severe as the worst of them. */
function merged(suspicions: readonly Suspicion[]): readonly Suspicion[] {
  if (suspicions.length < 2) return suspicions;
  const kept: Suspicion[] = [];
  const lastOf = new Map<string, number>();
  for (const suspicion of suspicions.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const index = lastOf.get(suspicion.code);
    const last = index === undefined ? undefined : kept[index];
    if (index === undefined || last === undefined || suspicion.start >= last.end) {
      lastOf.set(suspicion.code, kept.length);
      kept.push(suspicion);
      continue;
    }
    kept[index] = {
      ...last,
      end: Math.max(last.end, suspicion.end),
      severity:
        SEVERITIES[Math.max(SEVERITIES.indexOf(last.severity), SEVERITIES.indexOf(suspicion.severity))] ?? "high",
    };
  }
  return kept;
}
