/** Requests per minute, for each of many keys, at one number per key. */
import { BlockList, isIP, isIPv6 } from "node:net";
import type { HttpRequest } from "./http-exchange.ts";
import type { Clock } from "../../base/clock.ts";

const MINUTE_MS = 60_000;
/** Above this many keys, full buckets are dropped, then the oldest. */
const MAX_KEYS = 20_000;

/**
 * A token bucket of one minute that refills steadily. Stored as the time at which it would be full again, so that an unused key
 * needs no entry.
 */
export class RateLimit {
  readonly #clock: Clock;
  readonly #fullAt = new Map<string, number>();
  #perMinute: number;

  constructor(clock: Clock, perMinute: number) {
    this.#clock = clock;
    this.#perMinute = perMinute;
  }

  /** A changed rate starts with full buckets: the old times were counted at another rate. */
  set perMinute(value: number) {
    if (value !== this.#perMinute) this.#fullAt.clear();
    this.#perMinute = value;
  }

  /** 0 if the request is allowed, otherwise the milliseconds to wait. A refused request does not count. */
  take(key: string): number {
    const now = this.#clock.now();
    const each = MINUTE_MS / this.#perMinute;
    // The wall clock may be set back; no wait is longer than the bucket takes to fill.
    const owed = Math.min(Math.max(0, (this.#fullAt.get(key) ?? now) - now), MINUTE_MS);
    const wait = owed + each - MINUTE_MS;
    // A rounding error must not cost a request.
    if (wait > 1e-6) return wait;
    if (this.#fullAt.size >= MAX_KEYS && !this.#fullAt.has(key)) this.#makeRoom(now);
    this.#fullAt.set(key, now + owed + each);
    return 0;
  }

  get keys(): number {
    return this.#fullAt.size;
  }

  #makeRoom(now: number): void {
    for (const [key, fullAt] of this.#fullAt) if (fullAt <= now) this.#fullAt.delete(key);
    // A tenth at once, so that the sweep is rare even if no bucket is full.
    let excess = this.#fullAt.size - MAX_KEYS * 0.9;
    for (const key of this.#fullAt.keys()) {
      if (excess-- <= 0) break;
      this.#fullAt.delete(key);
    }
  }
}

/** Addresses and networks as in `10.0.0.0/8`, which the schema has checked. */
export function addressList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    list.addSubnet(address, prefix === undefined ? (family === "ipv6" ? 128 : 32) : Number(prefix), family);
  }
  return list;
}

/** Of a chain of proxies this many are looked through. */
const MAX_PROXIES = 16;

/**
 * Where a request comes from: behind a proxy of the config, what that proxy says in `X-Forwarded-For`, whose last entry it wrote itself.
 * What stands before the first stranger is that stranger's own word.
 */
export function clientAddress({ socket, headers }: HttpRequest, proxies: BlockList): string | undefined {
  let address = socket.remoteAddress;
  const forwarded = [headers["x-forwarded-for"] ?? []].flat().join(",");
  for (const said of forwarded.split(",").slice(-MAX_PROXIES).toReversed()) {
    if (address === undefined || !isIn(proxies, address)) return address;
    const next = said.trim().replace(/^\[|\]$/g, "");
    if (isIP(next) === 0) return address;
    address = next;
  }
  return address;
}

function isIn(list: BlockList, address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  return isIP(plain) !== 0 && list.check(plain, isIPv6(plain) ? "ipv6" : "ipv4");
}

/** One client address: for IPv6 the first half, because clients get whole networks. */
export function addressKey(address: string | undefined): string {
  if (address === undefined) return "unknown";
  if (address.startsWith("::ffff:")) return address.slice("::ffff:".length);
  if (!isIPv6(address)) return address;
  const [head = "", tail] = (address.split("%", 1)[0] ?? "").split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  const all = [...groups, ...Array<string>(zeros).fill("0"), ...after];
  return `${all.slice(0, 4).join(":")}::/64`;
}
