/** Compares what a server offers with its pins, and turns the result into a verdict for policy. */
import { fingerprint } from "../../base/fingerprint.ts";
import type { Capability } from "../../model/capability.ts";
import type { Rule } from "../../model/decision.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";

/** Everything from a server that a model may read before any call. */
const PIN_KINDS = ["tool", "prompt", "resource", "template", "instructions"] as const;
export type PinKind = (typeof PIN_KINDS)[number];

/** The name of a server's instructions, of which it has only one set. */
export const INSTRUCTIONS = "instructions";

/** Something that a server offers now. */
export interface Offered {
  readonly kind: PinKind;
  /** The server's own name for it; of a resource its URI, of a template its `uriTemplate`. */
  readonly name: string;
  /** The definition, without the parts that change by themselves. */
  readonly definition: JsonObject;
  /** SHA-256 (hex) of the canonical JSON of the definition. */
  readonly fingerprint: string;
}

export interface Pin extends Offered {
  /** Replaced by an equal one: see `Pins`. */
  definition: JsonObject;
  fingerprint: string;
  /** ISO time at which it was recorded or approved. */
  readonly pinnedAt: string;
}

/** By `pinKey`. */
export type ServerPins = ReadonlyMap<string, Pin>;

export type PinComparison =
  | { readonly state: "new"; readonly after: Offered }
  | { readonly state: "same"; readonly pin: Pin; readonly after: Offered }
  | { readonly state: "changed"; readonly pin: Pin; readonly after: Offered }
  | { readonly state: "gone"; readonly pin: Pin };

export type PinState = PinComparison["state"];

/** Unique within a server: a prompt may have the name of a tool. */
export function pinKey({ kind, name }: Pick<Offered, "kind" | "name">): string {
  return `${kind} ${name}`;
}

/** In the order of `current`, those that are gone last. */
export function comparePins(pinned: ServerPins, current: ReadonlyMap<string, Offered>): PinComparison[] {
  const compared = [...current].map(([key, after]): PinComparison => {
    const pin = pinned.get(key);
    if (pin === undefined) return { state: "new", after };
    return pin.fingerprint === after.fingerprint ? { state: "same", pin, after } : { state: "changed", pin, after };
  });
  for (const [key, pin] of pinned) if (!current.has(key)) compared.push({ state: "gone", pin });
  return compared;
}

/** Of resources. Capabilities are immutable, and asked about with every list and call. */
const offeredResources = new WeakMap<Capability, Offered>();

export function offeredOf(capability: Capability): Offered {
  const { kind, origin, definition, fingerprint: print } = capability;
  if (kind !== "resource") return { kind, name: origin.name, definition, fingerprint: print };
  let offered = offeredResources.get(capability);
  if (offered === undefined) {
    const lasting = withoutVolatileFields(definition);
    const ownPrint = lasting === definition ? print : fingerprint(lasting);
    offered = { kind, name: origin.name, definition: lasting, fingerprint: ownPrint };
    offeredResources.set(capability, offered);
  }
  return offered;
}

/** Also for a server without instructions: the first ones it has later are a change. */
export function offeredInstructions(text: string | null): Offered {
  if (text === null || text === "") return NO_INSTRUCTIONS;
  const definition = { text };
  return { kind: "instructions", name: INSTRUCTIONS, definition, fingerprint: fingerprint(definition) };
}

const NO_INSTRUCTIONS: Offered = {
  kind: "instructions",
  name: INSTRUCTIONS,
  definition: {},
  fingerprint: fingerprint({}),
};

/**
 * The size of a resource and the time of its last change follow its content, which is not pinned. Anything else in their
 * place is a text like any other.
 */
function withoutVolatileFields(definition: JsonObject): JsonObject {
  const { size, ...sizeless } = definition;
  const rest = typeof size === "number" ? sizeless : definition;
  const { annotations, ...bare } = rest;
  if (!isJsonObject(annotations)) return rest;
  const { lastModified, ...others } = annotations;
  if (typeof lastModified !== "string" || !ISO_TIME.test(lastModified)) return rest;
  return Object.keys(others).length === 0 ? bare : { ...bare, annotations: others };
}

const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/;

/** off: not compared. warn: reported. ask: each use needs approval. block: invisible until approved. */
export type PinMode = "off" | "warn" | "ask" | "block";

/** The verdict of the pins on one tool, prompt, resource or template, for policy. */
export type PinVerdict =
  | { readonly verdict: "allow" }
  | { readonly verdict: "ask" | "deny"; readonly reason: string; readonly hint: string; readonly rule: Rule };

const APPROVE_HINT = "toolcrib pins diff shows what changed; toolcrib pins approve accepts it.";
const REPAIR_HINT =
  "Restore an earlier version of the file, or delete it while no hub is running to pin everything again.";
const ALLOWED: PinVerdict = { verdict: "allow" };

/** Something whose definition is not the pinned one; anything if there are no usable pins. */
interface Unpinned extends Pick<Offered, "kind" | "name" | "fingerprint"> {
  readonly server: string;
}

export function changedVerdict(mode: PinMode, thing: Unpinned, file: string): PinVerdict {
  const reason = `the definition of ${thing.name} of the server ${thing.server} has changed since it was pinned`;
  return pinRefusal(mode, thing, file, reason, APPROVE_HINT);
}

/** It came after its server was pinned, so there is nothing that it could be compared with. */
export function newVerdict(mode: PinMode, thing: Unpinned, file: string): PinVerdict {
  const reason = `the ${thing.kind} ${thing.name} is new since the server ${thing.server} was pinned`;
  return pinRefusal(mode, thing, file, reason, APPROVE_HINT);
}

/** No definition can be compared, so `ask` and `block` let nothing pass by itself. */
export function unusableVerdict(mode: PinMode, thing: Unpinned, file: string): PinVerdict {
  return pinRefusal(
    mode,
    thing,
    file,
    `${file} cannot be used, so no definition can be compared with its pin`,
    REPAIR_HINT,
  );
}

/**
 * The rule names the definition, so that an approval does not apply to the next one. By the whole fingerprint, because a server
 * could make two definitions whose fingerprints begin alike.
 */
function pinRefusal(mode: PinMode, { fingerprint }: Unpinned, file: string, reason: string, hint: string): PinVerdict {
  if (mode === "off" || mode === "warn") return ALLOWED;
  const rule: Rule = { level: "pin", list: "pins", pattern: `${mode} ${fingerprint}`, where: file };
  return { verdict: mode === "ask" ? "ask" : "deny", reason, hint, rule };
}
