/** How the things that a server offers compare with what was pinned of them. */
import type { Capability } from "../../model/capability.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { fingerprint } from "../fingerprint.ts";

/** Everything a server says that a model may read before any call. */
export const PIN_KINDS = ["tool", "prompt", "resource", "template", "instructions"] as const;
export type PinKind = (typeof PIN_KINDS)[number];

/** A server has one set of instructions, so these are named after what they are. */
export const INSTRUCTIONS = "instructions";

/** Something that a server offers now. */
export interface Offered {
  readonly kind: PinKind;
  /** The server's own name for it; of a resource its URI, of a template its `uriTemplate`. */
  readonly name: string;
  /** What is compared: the definition, without what changes by itself. */
  readonly definition: JsonObject;
  /** SHA-256 (hex) of the canonical JSON of the definition. */
  readonly fingerprint: string;
}

export interface Pin extends Offered {
  /** ISO time at which it was recorded or approved. */
  readonly pinnedAt: string;
}

/** By `pinKey`. */
export type ServerPins = ReadonlyMap<string, Pin>;

export type PinComparison =
  | { readonly state: "new"; readonly after: Offered }
  | { readonly state: "same"; readonly pin: Pin }
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
    return pin.fingerprint === after.fingerprint ? { state: "same", pin } : { state: "changed", pin, after };
  });
  for (const [key, pin] of pinned) if (!current.has(key)) compared.push({ state: "gone", pin });
  return compared;
}

/** Capabilities are immutable, and asked about with every list and call. */
const offeredBy = new WeakMap<Capability, Offered>();

export function offeredOf(capability: Capability): Offered {
  let offered = offeredBy.get(capability);
  if (offered === undefined) {
    const { kind, origin } = capability;
    const definition = kind === "resource" ? withoutVolatile(capability.definition) : capability.definition;
    const print = definition === capability.definition ? capability.fingerprint : fingerprint(definition);
    offered = { kind, name: origin.name, definition, fingerprint: print };
    offeredBy.set(capability, offered);
  }
  return offered;
}

/** Also of a server that gives none: the first ones that it ever gives are a change. */
export function offeredInstructions(text: string | null): Offered {
  const definition = text === null || text === "" ? {} : { text };
  return { kind: "instructions", name: INSTRUCTIONS, definition, fingerprint: fingerprint(definition) };
}

/**
 * The size of a resource and the time of its last change follow its content, which is not pinned. Anything else in their
 * place is a text like any other.
 */
function withoutVolatile(definition: JsonObject): JsonObject {
  const { size, ...sizeless } = definition;
  const rest = typeof size === "number" ? sizeless : definition;
  const { annotations, ...bare } = rest;
  if (!isJsonObject(annotations)) return rest;
  const { lastModified, ...others } = annotations;
  if (typeof lastModified !== "string" || !TIME.test(lastModified)) return rest;
  return Object.keys(others).length === 0 ? bare : { ...bare, annotations: others };
}

const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/;
