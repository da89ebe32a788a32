import { getRouteApi, Link } from "@tanstack/react-router";
import type { PromptInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { nextPageOf, usePages } from "../../state/queries.ts";
import { CatalogPage, lineClass } from "../resources/catalog-page.tsx";
import { PromptDetail } from "./prompt-detail.tsx";

const route = getRouteApi("/prompts");
const PAGE = 500;

export function PromptsView() {
  const { q, server, prompt } = route.useSearch();
  const navigate = route.useNavigate();
  const query = usePages("listPrompts", { limit: PAGE, q, serverId: server }, { keep: true });
  const found = query.data?.pages.flatMap((page) => page.prompts);
  return (
    <CatalogPage
      title={resources.prompts}
      count={resources.countPrompts}
      find={resources.findPrompt}
      icon="prompts"
      none={resources.noPrompts}
      noneHow={resources.noPromptsHow}
      filters={{ q, server }}
      onFilter={(filters) => void navigate({ search: (old) => ({ ...old, ...filters }), replace: true })}
      total={query.data?.pages[0]?.total}
      busy={query.isFetching && query.data !== undefined}
      onEnd={nextPageOf(query)}
      instead={
        <Loaded query={query} skeleton={<Skeleton lines={10} label={t(resources.loading)} />}>
          {() => null}
        </Loaded>
      }
      list={
        found && {
          count: found.length,
          key: (index) => found[index]?.name ?? String(index),
          line: (index) => {
            const each = found[index];
            return each === undefined ? null : <Line prompt={each} chosen={each.name === prompt} />;
          },
        }
      }
      detail={
        prompt === undefined ? undefined : (
          <PromptDetail
            key={prompt}
            name={prompt}
            onClose={() => void navigate({ search: (old) => ({ ...old, prompt: undefined }) })}
          />
        )
      }
    />
  );
}

function Line({ prompt, chosen }: { readonly prompt: PromptInfo; readonly chosen: boolean }) {
  const { name, title, description, serverId } = prompt;
  return (
    <Link
      from="/prompts"
      to="/prompts"
      search={(old) => ({ ...old, prompt: name })}
      aria-current={chosen ? "true" : undefined}
      className={lineClass(chosen)}
    >
      <span className="flex items-center gap-2">
        <span className="truncate font-mono text-sm font-medium">{name}</span>
        <span className="ml-auto hidden shrink-0 text-sm text-faint sm:inline">{serverId}</span>
      </span>
      <span className="truncate text-sm text-soft">{description ?? title ?? t(resources.noDescription)}</span>
    </Link>
  );
}
