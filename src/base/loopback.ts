/** Whether a host name, as `URL.hostname` gives it, is this machine. Plain http is allowed to nowhere else. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  if (host === "localhost" || host.endsWith(".localhost") || host === "[::1]") return true;
  // URL parsing turns every spelling of an IPv4 address (127.1, 0x7f000001) into four decimal parts.
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}
