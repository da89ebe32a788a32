import { getRouteApi, Link } from "@tanstack/react-router";
import type { ResourceInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { usePages } from "../../state/queries.ts";
import { CatalogPage, lineClass } from "./catalog-page.tsx";
import { ResourceDetail } from "./resource-detail.tsx";

const route = getRouteApi("/resources");
const PAGE = 500;

export function ResourcesView() {
  const { q, server, uri } = route.useSearch();
  const navigate = route.useNavigate();
  const query = usePages("listResources", { limit: PAGE, q, serverId: server }, { keep: true });
  const close = (): void => void navigate({ search: (old) => ({ ...old, uri: undefined }) });
  return (
    <CatalogPage
      title={resources.resources}
      count={resources.countResources}
      find={resources.findResource}
      icon="resources"
      none={resources.noResources}
      noneHow={resources.noResourcesHow}
      filters={{ q, server }}
      onFilter={(filters) => void navigate({ search: (old) => ({ ...old, ...filters }), replace: true })}
      query={query}
      entries={query.data?.pages.flatMap((page) => page.resources) ?? []}
      keyOf={(each) => each.uri}
      line={(each) => <Line resource={each} chosen={each.uri === uri} />}
      onClose={close}
      detail={uri === undefined ? undefined : <ResourceDetail key={uri} uri={uri} onClose={close} />}
    />
  );
}

function Line({ resource, chosen }: { readonly resource: ResourceInfo; readonly chosen: boolean }) {
  const { uri, name, title, description, template, mimeType, serverId } = resource;
  return (
    <Link
      from="/resources"
      to="/resources"
      search={(old) => ({ ...old, uri })}
      aria-current={chosen ? "true" : undefined}
      className={lineClass(chosen)}
    >
      <span className="flex items-center gap-2">
        <span className="truncate font-medium">{title ?? name}</span>
        {template && <Badge>{t(resources.template)}</Badge>}
        {mimeType !== undefined && <span className="hidden shrink-0 text-sm text-faint sm:inline">{mimeType}</span>}
        <span className="ml-auto hidden shrink-0 text-sm text-faint sm:inline">{serverId}</span>
      </span>
      <span className="truncate font-mono text-sm text-soft" title={description}>
        {uri}
      </span>
    </Link>
  );
}
