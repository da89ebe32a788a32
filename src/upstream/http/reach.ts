/**
 * Which addresses a server that a client brought may be at. Names are judged by what they resolve to, on the very look-up
 * that the socket uses: between a check and a second look-up the answer could change.
 */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { ToolcribError } from "../../model/errors.ts";
import { type AddressKind, addressKind, unmapped } from "./address-kind.ts";

export interface Reach {
  /** Throws `denied` for an address that is written out; a name passes, and is judged by `lookup`. */
  check(url: URL): void;
  /** Whether credentials may go there over plain http: to a host that the operator named, or a private address that is allowed. */
  allowsPlain(url: URL): boolean;
  readonly lookup: LookupFunction;
}

/** As `dns.lookup` with `all`. */
export type LookUpAll = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface ReachOptions {
  /** The config's `sessions.allowHosts`: names, `*.suffix`, addresses, networks. */
  readonly allowHosts: readonly string[];
  /** This machine was named, which is allowed. */
  readonly onLoopback?: (host: string) => void;
  readonly lookup?: LookUpAll;
}

/** Names under which clouds hand out credentials. */
const METADATA_NAMES = new Set(["metadata.google.internal", "metadata", "instance-data", "metadata.azure.internal"]);

const WORDS: Readonly<Record<Exclude<AddressKind, "public" | "loopback">, string>> = {
  private: "a private address",
  "link-local": "a link-local address",
  metadata: "an address that hands out a machine's credentials",
  reserved: "an address that is no server's",
};

/** For addresses that clients bring. */
export function limitedReach({ allowHosts, onLoopback, lookup = systemLookup }: ReachOptions): Reach {
  const allowed = new AllowedHosts(allowHosts);
  const refusalOf = (host: string, address: string): ToolcribError | undefined => {
    const kind = METADATA_NAMES.has(host) ? "metadata" : addressKind(address);
    if (kind === "loopback") onLoopback?.(host);
    if (kind === "public" || kind === "loopback") return undefined;
    const isAllowed = kind === "metadata" ? allowed.names(host, address) : allowed.admits(host, address);
    return isAllowed ? undefined : refusal(host, kind);
  };
  return {
    check({ hostname }) {
      const host = hostOf(hostname);
      const refused = isIP(host) === 0 ? undefined : refusalOf(host, host);
      if (refused !== undefined) throw refused;
    },
    allowsPlain({ hostname }) {
      const host = hostOf(hostname);
      if (isIP(host) === 0) return allowed.lists(host);
      return addressKind(host) !== "public" && allowed.admits(host, host);
    },
    lookup(hostname, options, callback) {
      const host = hostOf(hostname);
      lookup(hostname, { ...options, all: true }, (error, addresses) => {
        if (error) return callback(error, "");
        const [refused] = addresses.flatMap(({ address }) => refusalOf(host, address) ?? []);
        const usable = addresses.filter(({ address }) => refusalOf(host, address) === undefined);
        const [first] = usable;
        if (first === undefined) return callback(refused ?? notFound(hostname), "");
        return options.all === true ? callback(null, usable) : callback(null, first.address, first.family);
      });
    },
  };
}

class AllowedHosts {
  readonly #exact: ReadonlySet<string>;
  readonly #suffixes: readonly string[];
  readonly #networks = new BlockList();

  constructor(entries: readonly string[]) {
    const hosts = entries.map((entry) => hostOf(entry.trim()));
    this.#exact = new Set(hosts.map((host) => (isIP(host) === 0 ? host : unmapped(host))));
    this.#suffixes = hosts.filter((host) => host.startsWith("*.")).map((host) => host.slice(1));
    for (const host of hosts) {
      const [, network = "", prefix = ""] = /^(.+)\/(\d{1,3})$/.exec(host) ?? [];
      const family = isIP(network);
      if (family !== 0 && Number(prefix) <= (family === 4 ? 32 : 128)) {
        this.#networks.addSubnet(network, Number(prefix), family === 4 ? "ipv4" : "ipv6");
      }
    }
  }

  lists(host: string): boolean {
    return this.#exact.has(host);
  }

  /** Whether it stands there by itself, rather than in a network or under a suffix. */
  names(host: string, address: string): boolean {
    return this.#exact.has(unmapped(address)) || (METADATA_NAMES.has(host) && this.#exact.has(host));
  }

  admits(host: string, address: string): boolean {
    const plain = unmapped(address);
    if (this.#exact.has(host) || this.#exact.has(plain)) return true;
    if (this.#suffixes.some((suffix) => host.endsWith(suffix))) return true;
    return this.#networks.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
  }
}

/** In lower case, without brackets and the dot of the root. */
function hostOf(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
}

function refusal(host: string, kind: keyof typeof WORDS): ToolcribError {
  return new ToolcribError("denied", `${host} is ${WORDS[kind]}, which a client's server may not be at`, {
    hint: "Whoever runs Toolcrib can allow it in `sessions.allowHosts`.",
    details: { sent: false, permanent: true },
  });
}

function notFound(hostname: string): Error {
  return Object.assign(new Error(`no address for ${hostname}`), { code: "ENOTFOUND" });
}
