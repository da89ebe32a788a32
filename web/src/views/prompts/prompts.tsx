import { getRouteApi, Link } from "@tanstack/react-router";
import type { PromptInfo } from "../../../../src/contract/catalog-schemas.ts";
import { t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { usePages } from "../../state/queries.ts";
import { CatalogPage, lineClass } from "../resources/catalog-page.tsx";
import { PromptDetail } from "./prompt-detail.tsx";

const route = getRouteApi("/prompts");
const PAGE = 500;

export function PromptsView() {
  const { q, server, prompt } = route.useSearch();
  const navigate = route.useNavigate();
  const query = usePages("listPrompts", { limit: PAGE, q, serverId: server }, { keep: true });
  const close = (): void => void navigate({ search: (old) => ({ ...old, prompt: undefined }) });
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
      query={query}
      entries={query.data?.pages.flatMap((page) => page.prompts) ?? []}
      keyOf={(each) => each.name}
      line={(each) => <Line prompt={each} chosen={each.name === prompt} />}
      onClose={close}
      detail={prompt === undefined ? undefined : <PromptDetail key={prompt} name={prompt} onClose={close} />}
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
