/**
 * Names judged by what they resolve to, on the very look-up that the socket uses: between a check and a second look-up the
 * answer could change.
 */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { isLoopback } from "../model/loopback.ts";

/** As `dns.lookup` with `all`. */
export type LookUpAll = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * For the `lookup` of a connection: it gets only addresses that pass, and the first refusal if none does.
 * @param judge Why the address must not be connected to; undefined lets it pass.
 */
export function judgedLookup(
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

/** The address that a URL says outright; undefined for a name that has to be looked up. */
export function writtenAddress({ hostname }: URL): string | undefined {
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
