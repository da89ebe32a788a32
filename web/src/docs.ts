/** The pages of docs/: their headings at once, their texts when they are read. */
interface DocsPage {
  readonly page: string;
  readonly title: string;
  readonly headings: readonly string[];
}

const headings = import.meta.glob<readonly string[]>("../../docs/*.md", {
  query: "?headings",
  import: "default",
  eager: true,
});
const texts = import.meta.glob<string>("../../docs/*.md", { query: "?raw", import: "default" });

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1, -".md".length);

/** Of the others none is meant to be read first. */
const FIRST = "tutorial";

export const PAGES: readonly DocsPage[] = Object.entries(headings)
  .filter(([path]) => nameOf(path) !== "README")
  .map(([path, [title = nameOf(path), ...rest]]) => ({ page: nameOf(path), title, headings: rest }))
  .toSorted((a, b) => Number(b.page === FIRST) - Number(a.page === FIRST));

/** Empty for a page that is not there. */
export async function docsText(page: string): Promise<string> {
  return (await texts[`../../docs/${page}.md`]?.()) ?? "";
}
