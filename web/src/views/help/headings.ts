/** The anchors of headings, as GitHub makes them: links in docs/ use these. */
export function headingId(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

/** Where a link of docs/ leads: another of its pages, a place on the same one, or nowhere on the page. */
export function docsTarget(href: string): { readonly page?: string; readonly at?: string } | undefined {
  const match = /^(?:([\w-]+)\.md)?(?:#([\w-]+))?$/.exec(href);
  if (match === null || href === "") return undefined;
  const [, page, at] = match;
  return { ...(page === undefined ? {} : { page }), ...(at === undefined ? {} : { at }) };
}

/** Comments are notes to tests. */
export function withoutComments(markdown: string): string {
  return markdown.replaceAll(/<!--[^]*?-->/g, "");
}
