import { getRouteApi, Link } from "@tanstack/react-router";
import type { ResourceInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { nextPageOf, usePages } from "../../state/queries.ts";
import { CatalogPage, lineClass } from "./catalog-page.tsx";
import { ResourceDetail } from "./resource-detail.tsx";

const route = getRouteApi("/resources");
const PAGE = 500;

export function ResourcesView() {
  const { q, server, uri } = route.useSearch();
  const navigate = route.useNavigate();
  const query = usePages("listResources", { limit: PAGE, q, serverId: server }, { keep: true });
  const found = query.data?.pages.flatMap((page) => page.resources);
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
          key: (index) => found[index]?.uri ?? String(index),
          line: (index) => {
            const resource = found[index];
            return resource === undefined ? null : <Line resource={resource} chosen={resource.uri === uri} />;
          },
        }
      }
      detail={
        uri === undefined ? undefined : (
          <ResourceDetail
            key={uri}
            uri={uri}
            onClose={() => void navigate({ search: (old) => ({ ...old, uri: undefined }) })}
          />
        )
      }
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
