/** Which addresses a server that a client brought may be at. Whatever is refused is refused before anything is connected to. */
import { BlockList, isIP, type LookupFunction } from "node:net";
import {
  ADDRESS_KIND_TEXT,
  type AddressKind,
  addressKind,
  bareHost,
  filteredLookup,
  isLoopback,
  isThisMachine,
  literalAddress,
  type LookUpAll,
  portOf,
  unwrapMappedAddress,
} from "../../base/network-address.ts";
import { ToolcribError } from "../../model/errors.ts";
import { notSent } from "../wire.ts";

export interface AddressPolicy {
  /** Throws `denied` for an address that is written out; a name passes, and is judged by `lookup`. */
  check(url: URL): void;
  /** Whether credentials may go there over plain http: to a host that the operator named, or a private address that is allowed. */
  allowsPlain(url: URL): boolean;
  /** For the socket of a request to this address. */
  lookup(url: URL): LookupFunction;
}

export interface AddressPolicyOptions {
  /** The config's `sessions.allowHosts`: names, `*.suffix`, addresses, networks; names and addresses also with a port. */
  readonly allowHosts: readonly string[];
  /**
   * Whether the client may start programs here, which reach this machine without us. Any other client reaches of this machine
   * what `allowHosts` names with its port, and does not learn what a name of the network resolves to.
   */
  readonly localClient: boolean;
  /** Ports of this machine that belong to Toolcrib itself, and are refused to every caller. */
  readonly isGuarded?: (port: number) => boolean;
  /** This machine was named, which is allowed. */
  readonly onLoopback?: (host: string) => void;
  readonly lookup?: LookUpAll;
}

/** Names under which clouds hand out credentials. */
const METADATA_NAMES = new Set(["metadata.google.internal", "metadata", "instance-data", "metadata.azure.internal"]);

/** For addresses that clients bring. */
export function addressPolicy(options: AddressPolicyOptions): AddressPolicy {
  const { localClient, isGuarded = () => false, onLoopback, lookup } = options;
  const allowed = new AllowedHosts(options.allowHosts);
  const refusalOf = (url: URL, address: string): ToolcribError | undefined => {
    const host = bareHost(url.hostname);
    const port = portOf(url);
    const kind = METADATA_NAMES.has(host) ? "metadata" : addressKind(address);
    if (isThisMachine(address)) {
      // The port has to be named too: others belong to programs that the operator did not think of.
      if (!localClient && !allowed.namesPort(host, address, port)) return addressRefused(host, kind);
      if (isGuarded(port)) return localClient ? portRefused(host, port) : addressRefused(host, kind);
      onLoopback?.(host);
      return undefined;
    }
    if (kind === "public") return undefined;
    const isAllowed =
      kind === "metadata"
        ? allowed.names(host, address)
        : allowed.admits(host, address) || allowed.namesPort(host, address, port);
    return isAllowed ? undefined : addressRefused(host, kind);
  };
  return {
    check(url) {
      const address = literalAddress(url);
      const refused = address === undefined ? undefined : refusalOf(url, address);
      if (refused !== undefined) throw refused;
    },
    allowsPlain(url) {
      const host = bareHost(url.hostname);
      const port = portOf(url);
      if (isIP(host) === 0) return allowed.lists(host) || allowed.namesPort(host, host, port);
      if (addressKind(host) === "public") return false;
      return allowed.admits(host, host) || allowed.namesPort(host, host, port);
    },
    lookup(url) {
      const judged = filteredLookup((address) => refusalOf(url, address), lookup);
      if (localClient) return judged;
      return (hostname, lookupOptions, callback) =>
        judged(hostname, lookupOptions, (error, ...found) =>
          callback(error && hiddenLookupError(error, hostname), ...found),
        );
    },
  };
}

class AllowedHosts {
  readonly #exact: ReadonlySet<string>;
  readonly #suffixes: readonly string[];
  readonly #networks = new BlockList();
  /** `host port`, with addresses in one spelling. */
  readonly #ports: ReadonlySet<string>;

  constructor(entries: readonly string[]) {
    const hosts = entries.map((entry) => bareHost(entry.trim()));
    this.#exact = new Set(hosts.map((host) => (isIP(host) === 0 ? host : unwrapMappedAddress(host))));
    this.#suffixes = hosts.filter((host) => host.startsWith("*.")).map((host) => host.slice(1));
    for (const host of hosts) {
      const [, network = "", prefix = ""] = /^(.+)\/(\d{1,3})$/.exec(host) ?? [];
      const family = isIP(network);
      if (family !== 0 && Number(prefix) <= (family === 4 ? 32 : 128)) {
        this.#networks.addSubnet(network, Number(prefix), family === 4 ? "ipv4" : "ipv6");
      }
    }
    this.#ports = new Set(
      hosts.flatMap((entry) => {
        const [, host, port] = /^(\[[^\]]+\]|[^:]+):(\d{1,5})$/.exec(entry) ?? [];
        return host === undefined ? [] : [`${unwrapMappedAddress(bareHost(host))} ${Number(port)}`];
      }),
    );
  }

  lists(host: string): boolean {
    return this.#exact.has(host);
  }

  /** Whether it is listed by itself, rather than in a network or under a suffix. */
  names(host: string, address: string): boolean {
    return this.#exact.has(unwrapMappedAddress(address)) || (METADATA_NAMES.has(host) && this.#exact.has(host));
  }

  namesPort(host: string, address: string, port: number): boolean {
    return this.#ports.has(`${host} ${port}`) || this.#ports.has(`${unwrapMappedAddress(address)} ${port}`);
  }

  admits(host: string, address: string): boolean {
    const plain = unwrapMappedAddress(address);
    if (this.#exact.has(host) || this.#exact.has(plain)) return true;
    if (this.#suffixes.some((suffix) => host.endsWith(suffix))) return true;
    return this.#networks.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
  }
}

const OTHER_MACHINE_HINT =
  "Whoever runs Toolcrib can allow it in `sessions.allowHosts`; an address of Toolcrib's own machine needs its port there.";
const THIS_MACHINE_HINT =
  "Clients on stdio and tokens with the scope `admin` may use servers of this machine. For others, whoever runs Toolcrib can allow one in `sessions.allowHosts`, with its port: `127.0.0.1:8080`.";

/** The same for every port, whatever listens there, and for private addresses of this machine and of others. */
function addressRefused(host: string, kind: AddressKind): ToolcribError {
  const hint = kind === "loopback" || kind === "public" ? THIS_MACHINE_HINT : OTHER_MACHINE_HINT;
  return denied(`${host} is ${ADDRESS_KIND_TEXT[kind]}, which a client's server may not be at`, hint);
}

function portRefused(host: string, port: number): ToolcribError {
  return denied(
    `port ${port} of ${host} belongs to Toolcrib itself, which a client's server may not be at`,
    "It is the address of a hub, whose tools a session has without it, or a container's that only its hub may use.",
  );
}

/** Whether a name exists in the network of the hub, and where it leads, is not public. */
function hiddenLookupError(error: NodeJS.ErrnoException, hostname: string): NodeJS.ErrnoException {
  if (!(error instanceof ToolcribError) && error.code !== "ENOTFOUND") return error;
  return denied(
    `${bareHost(hostname)} has no address that a client's server may be at`,
    "Check the name. Whoever runs Toolcrib can allow private addresses in `sessions.allowHosts`.",
  );
}

function denied(message: string, hint: string): ToolcribError {
  return notSent("denied", message, hint, { permanent: true });
}

/**
 * Throws for an address that must not be used: remote servers are reached over https only, because headers carry
 * credentials. The message holds no query, which may hold a key.
 * @param reach Of a server that a client brought.
 * @param allowHttp The operator said of this very server that its network can be trusted.
 */
export function checkRemoteAddress(text: string, reach?: AddressPolicy, allowHttp = false): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new ToolcribError("invalid_config", "The url is not a valid http or https address.", {
      hint: "Write it in full, such as https://example.com/mcp.",
    });
  }
  reach?.check(url);
  const isSafe = url.protocol === "https:" || isLoopback(url.hostname);
  if (isSafe || allowHttp || reach?.allowsPlain(url) === true) return url;
  throw new ToolcribError("invalid_config", `The url of ${url.host} is plain http; remote servers must be https.`, {
    hint: "Use https. Plain http is allowed on loopback only (localhost, 127.0.0.1, ::1).",
  });
}
