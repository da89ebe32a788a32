/** Network addresses: which of them are public, private or this machine, and look-ups that refuse the others. */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, isIPv4, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";

export type AddressKind = "public" | "loopback" | "private" | "link-local" | "metadata" | "reserved";

/** The kind of an address, for a message that refuses it. A public one is refused only where it is this machine's own. */
export const ADDRESS_KIND_TEXT: Readonly<Record<AddressKind, string>> = {
  public: "an address of the machine that Toolcrib runs on",
  loopback: "the machine that Toolcrib runs on",
  private: "a private address",
  "link-local": "a link-local address",
  metadata: "an address that hands out a machine's credentials",
  reserved: "a reserved address",
};

type Range = readonly [network: string, prefix: number];

/** The first list that contains the address decides. */
const V4: readonly (readonly [AddressKind, readonly Range[]])[] = [
  [
    "metadata",
    [
      ["169.254.169.254", 32],
      ["169.254.170.2", 32],
      ["169.254.170.23", 32],
      ["100.100.100.200", 32],
      ["168.63.129.16", 32],
      ["192.0.0.192", 32],
    ],
  ],
  ["loopback", [["127.0.0.0", 8]]],
  ["link-local", [["169.254.0.0", 16]]],
  [
    "private",
    [
      ["10.0.0.0", 8],
      ["172.16.0.0", 12],
      ["192.168.0.0", 16],
      ["100.64.0.0", 10],
    ],
  ],
  [
    "reserved",
    [
      ["0.0.0.0", 8],
      ["192.0.0.0", 24],
      ["192.0.2.0", 24],
      ["192.88.99.0", 24],
      ["198.18.0.0", 15],
      ["198.51.100.0", 24],
      ["203.0.113.0", 24],
      ["224.0.0.0", 4],
      ["240.0.0.0", 4],
    ],
  ],
];

const V6: typeof V4 = [
  [
    "metadata",
    [
      ["fd00:ec2::254", 128],
      ["fd00:ec2::23", 128],
      ["fd20:ce::254", 128],
    ],
  ],
  ["loopback", [["::1", 128]]],
  ["link-local", [["fe80::", 10]]],
  [
    "private",
    [
      ["fc00::", 7],
      ["fec0::", 10],
    ],
  ],
];

/** Only these are assigned for the internet, with some exceptions. */
const GLOBAL: Range = ["2000::", 3];
const NOT_GLOBAL: readonly Range[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["3fff::", 20],
];

/** Forms that contain an IPv4 address, and its offset in their bytes. */
const EMBEDDING: readonly (readonly [Range, at: number])[] = [
  [["::ffff:0:0", 96], 12],
  [["::ffff:0:0:0", 96], 12],
  [["64:ff9b::", 96], 12],
  [["2002::", 16], 2],
];

const v4Lists = V4.map(([kind, ranges]) => [kind, listOf(ranges, "ipv4")] as const);
const v6Lists = V6.map(([kind, ranges]) => [kind, listOf(ranges, "ipv6")] as const);
const embedding = EMBEDDING.map(([range, at]) => [listOf([range], "ipv6"), at] as const);
const global = listOf([GLOBAL], "ipv6");
const notGlobal = listOf(NOT_GLOBAL, "ipv6");

/** @param address As the system returns it, without brackets. Anything that is not an address is `reserved`. */
export function addressKind(address: string): AddressKind {
  const plain = withoutZone(address);
  if (isIPv4(plain)) return v4Lists.find(([, list]) => list.check(plain, "ipv4"))?.[0] ?? "public";
  if (isIP(plain) !== 6) return "reserved";
  for (const [list, at] of embedding) {
    if (list.check(plain, "ipv6"))
      return addressKind(
        bytesOf(plain)
          .slice(at, at + 4)
          .join("."),
      );
  }
  const special = v6Lists.find(([, list]) => list.check(plain, "ipv6"));
  if (special !== undefined) return special[0];
  return global.check(plain, "ipv6") && !notGlobal.check(plain, "ipv6") ? "public" : "reserved";
}

/** Connecting to these reaches whatever listens on this machine. */
const UNSPECIFIED = new Set(["0.0.0.0", "::"]);

/**
 * Whether a connection to the address ends on this machine: loopback, an address of one of its interfaces (what listens on all
 * of them answers there too), or the unspecified address.
 */
export function isThisMachine(address: string, interfaces = networkInterfaces()): boolean {
  if (addressKind(address) === "loopback") return true;
  const plain = canonical(address);
  if (UNSPECIFIED.has(plain)) return true;
  return Object.values(interfaces).some((each) => each?.some((own) => canonical(own.address) === plain));
}

/** One spelling for each address. */
function canonical(address: string): string {
  const plain = unwrapMappedAddress(address);
  return isIP(plain) === 6 ? new URL(`http://[${plain}]/`).hostname.slice(1, -1) : plain;
}

/** The IPv4 address in a form that only wraps one; otherwise the address itself. */
export function unwrapMappedAddress(address: string): string {
  const plain = withoutZone(address);
  const [mapped] = embedding;
  if (isIP(plain) !== 6 || mapped === undefined || !mapped[0].check(plain, "ipv6")) return plain;
  return bytesOf(plain).slice(12).join(".");
}

function withoutZone(address: string): string {
  return address.replace(/%.*$/, "");
}

function listOf(ranges: readonly Range[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of ranges) list.addSubnet(network, prefix, family);
  return list;
}

/** The sixteen bytes of an IPv6 address. */
function bytesOf(address: string): number[] {
  // URL parsing writes every spelling in groups of hex digits with at most one gap.
  const groups = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [head = "", tail] = groups.split("::");
  const front = words(head);
  const back = words(tail ?? "");
  const gap = tail === undefined ? 0 : 8 - front.length - back.length;
  return [...front, ...Array.from({ length: gap }, () => 0), ...back].flatMap((word) => [word >> 8, word & 255]);
}

function words(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}

/** As `dns.lookup` with `all`. */
export type LookUpAll = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * For the `lookup` of a connection: it gets only the addresses that pass, and the first refusal if none does. The check
 * runs on the look-up that the socket itself uses, because a second look-up could return other addresses.
 * @param judge Why the address must not be connected to; undefined lets it pass.
 */
export function filteredLookup(
  judge: (address: string) => Error | undefined,
  lookup: LookUpAll = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, "");
      const judged = addresses.map((found) => ({ found, refusal: judge(found.address) }));
      const usable = judged.flatMap(({ found, refusal }) => (refusal === undefined ? [found] : []));
      const [first] = usable;
      if (first === undefined) {
        const refusal = judged.find((each) => each.refusal !== undefined)?.refusal;
        return callback(refusal ?? notFound(hostname), "");
      }
      return options.all === true ? callback(null, usable) : callback(null, first.address, first.family);
    });
  };
}

/** In lower case, without brackets and the dot of the root. */
export function bareHost(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
}

/** The address in a URL; undefined for a name that must be looked up. */
export function literalAddress({ hostname }: URL): string | undefined {
  const host = bareHost(hostname);
  if (isIP(host) !== 0) return host;
  return isLoopback(hostname) ? "127.0.0.1" : undefined;
}

/** The port that a connection to the address uses. */
export function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

function notFound(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`no address for ${hostname}`), { code: "ENOTFOUND" });
}

/** Whether a host name from `URL.hostname` is this machine. Plain http is only allowed there. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  if (host === "localhost" || host.endsWith(".localhost") || host === "[::1]") return true;
  // URL parsing turns every spelling of an IPv4 address (127.1, 0x7f000001) into four decimal parts.
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}
