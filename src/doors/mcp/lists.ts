/**
 * Lists as bytes. A list is encoded once for each version and view, and every client that sees the same gets the same
 * bytes; of a list that changed only the entries that are new are encoded again. Which views there are is for clients to
 * choose, so only so many bytes are kept: those used last.
 */
import type { Capability } from "../../model/capability.ts";

const MOST_BYTES = 64 * 1024 * 1024;

/** Keeping a short list costs, too. */
const OVERHEAD = 1024;

class Kept {
  bytes: Buffer | undefined;
  readonly cost: number;
  readonly ref = new WeakRef(this);

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.cost = bytes.length + OVERHEAD;
  }
}

const entries = new WeakMap<Capability, string>();
const lists = new WeakMap<readonly Capability[], Kept>();
/** In the order of their last use. Weak: the bytes of a list that nobody has any more go with it. */
const recent = new Map<WeakRef<Kept>, number>();
let keptBytes = 0;

/** The JSON array of these definitions under their public names. */
export function listBytes(capabilities: readonly Capability[]): Buffer {
  const known = lists.get(capabilities);
  if (known?.bytes !== undefined) {
    recent.delete(known.ref);
    recent.set(known.ref, known.cost);
    return known.bytes;
  }
  const bytes = Buffer.from(`[${capabilities.map(entryText).join(",")}]`);
  keep(capabilities, bytes);
  return bytes;
}

function keep(capabilities: readonly Capability[], bytes: Buffer): void {
  const kept = new Kept(bytes);
  lists.set(capabilities, kept);
  recent.set(kept.ref, kept.cost);
  keptBytes += kept.cost;
  for (const [ref, cost] of recent) {
    if (keptBytes <= MOST_BYTES || ref === kept.ref) return;
    recent.delete(ref);
    keptBytes -= cost;
    const oldest = ref.deref();
    if (oldest !== undefined) oldest.bytes = undefined;
  }
}

/** The definition exactly as the source sent it, but for the one field that must be unique here. */
function entryText(capability: Capability): string {
  let text = entries.get(capability);
  if (text === undefined) {
    text = JSON.stringify({ ...capability.definition, [UNIQUE_FIELD[capability.kind]]: capability.name });
    entries.set(capability, text);
  }
  return text;
}

const UNIQUE_FIELD = { tool: "name", prompt: "name", resource: "uri", template: "uriTemplate" } as const;
