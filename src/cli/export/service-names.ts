/** Names that every platform takes for a service: DNS labels that begin with a letter. */

const LONGEST = 50;

/** One for each id, in their order; no two are the same, and none is one of `taken`. */
export function serviceNames(ids: readonly string[], taken: Iterable<string>): string[] {
  const used = new Set(taken);
  return ids.map((id) => {
    const plain = `mcp-${id.toLowerCase()}`
      .replace(/[^a-z0-9]+/g, "-")
      .slice(0, LONGEST)
      .replace(/-+$/, "");
    let name = plain;
    for (let count = 2; used.has(name); count++) name = `${plain}-${count}`;
    used.add(name);
    return name;
  });
}
