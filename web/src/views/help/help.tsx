/** The documentation of this version, from the hub itself. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { Markdown, type OwnText } from "../../components/markdown.tsx";
import { Page } from "../../components/page.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { docsText, PAGES } from "../../docs.ts";
import { help } from "../../messages/help.ts";
import { t } from "../../messages/messages.ts";
import { shell } from "../../messages/shell.ts";
import { docsTarget, headingId, withoutComments } from "./headings.ts";

const route = getRouteApi("/help");

const OWN: OwnText = {
  headingId,
  link: (href, children) => <DocsLink href={href}>{children}</DocsLink>,
};

function DocsLink({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  const search = route.useSearch();
  const target = docsTarget(href);
  const page = target?.page ?? search.page;
  if (target === undefined || page === undefined || !PAGES.some((each) => each.page === page)) return children;
  return (
    <Link to="/help" search={{ page, at: target.at }}>
      {children}
    </Link>
  );
}

export function HelpView() {
  const { page } = route.useSearch();
  const shown = PAGES.find((each) => each.page === page);
  return (
    <Page title={t(shell.help)} description={t(help.about)}>
      <div className="grid gap-4 lg:grid-cols-[14rem_minmax(0,1fr)]">
        <nav
          aria-label={t(help.pages)}
          className={`self-start rounded-lg border border-line bg-panel p-2 lg:sticky lg:top-4 lg:max-h-[calc(100dvh-2rem)] lg:overflow-y-auto ${shown === undefined ? "" : "hidden lg:block"}`}
        >
          <ul>
            {PAGES.map((each) => (
              <li key={each.page}>
                <Link
                  to="/help"
                  search={{ page: each.page }}
                  aria-current={each.page === page ? "page" : undefined}
                  className="flex min-h-8 items-center rounded-md px-2 text-soft hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-wash aria-[current=page]:font-medium aria-[current=page]:text-accent"
                >
                  {each.title}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        {shown === undefined ? (
          <div className="hidden rounded-lg border border-line bg-panel lg:block">
            <Empty title={t(help.choose)} icon="skills" />
          </div>
        ) : (
          <Text key={shown.page} page={shown.page} />
        )}
      </div>
    </Page>
  );
}

function Text({ page }: { readonly page: string }) {
  const { at } = route.useSearch();
  const query = useQuery({
    queryKey: ["docs", page],
    queryFn: () => docsText(page),
    staleTime: Number.POSITIVE_INFINITY,
  });
  useEffect(() => {
    if (query.data === undefined || at === undefined) return;
    const heading = document.getElementById(at);
    heading?.scrollIntoView();
    heading?.focus({ preventScroll: true });
  }, [query.data, at]);
  return (
    <article className="min-w-0 rounded-lg border border-line bg-panel p-4 md:p-6">
      <Link to="/help" className="mb-3 inline-block text-accent underline lg:hidden">
        {t(help.allPages)}
      </Link>
      <div className="max-w-[52rem]">
        <Loaded query={query} skeleton={<Skeleton lines={12} />}>
          {(text) => <Markdown text={withoutComments(text)} own={OWN} />}
        </Loaded>
      </div>
    </article>
  );
}
