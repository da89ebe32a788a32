/** Addresses of the page's views. The hub answers each with the same document; what is below them as well. */
export const PAGE_PATHS = [
  "/",
  "/servers",
  "/tools",
  "/skills",
  "/approvals",
  "/sessions",
  "/audit",
  "/settings",
] as const;
