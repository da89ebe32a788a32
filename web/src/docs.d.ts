/** Made by web/vite.config.ts from docs/. */
declare module "virtual:docs" {
  interface DocsPage {
    readonly page: string;
    readonly title: string;
    readonly headings: readonly string[];
  }
  const pages: readonly DocsPage[];
  export default pages;
}
