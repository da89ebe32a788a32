/** Tools, resources and prompts of one server. */
import type { InfiniteData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Empty, Loaded } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { usePages } from "../../state/queries.ts";

const PAGE = 100;
const LINK = "text-accent hover:underline";

interface OffersProps<Page, Offer> {
  readonly query: Parameters<typeof Loaded<InfiniteData<Page>>>[0]["query"] & {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => Promise<unknown>;
  };
  readonly offersOf: (page: Page) => readonly Offer[];
  readonly label: string;
  readonly none: string;
  readonly line: (offer: Offer) => ReactNode;
}

function Offers<Page, Offer>({ query, offersOf, label, none, line }: OffersProps<Page, Offer>) {
  return (
    <Loaded query={query}>
      {({ pages }) => {
        const offers = pages.flatMap(offersOf);
        if (offers.length === 0) return <Empty title={none}>{t(serverWords.offersNone)}</Empty>;
        return (
          <>
            <ul aria-label={label} className="max-h-[60dvh] divide-y divide-line overflow-y-auto">
              {offers.map(line)}
            </ul>
            {query.hasNextPage && (
              <div className="p-3 text-center">
                <Button size="sm" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                  {t(serverWords.showMore)}
                </Button>
              </div>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

interface LineProps {
  readonly name: ReactNode;
  readonly extra: ReactNode;
  readonly description: string | undefined;
}

function Line({ name, extra, description }: LineProps) {
  return (
    <li className="px-4 py-2">
      <div className="flex flex-wrap items-center gap-2">
        <span className="min-w-0 font-mono text-sm break-all">{name}</span>
        {extra}
      </div>
      {description !== undefined && <p className="line-clamp-2 text-sm break-words text-soft">{description}</p>}
    </li>
  );
}

export function ToolsTab({ serverId }: { readonly serverId: string }) {
  const query = usePages("listTools", { serverId, limit: PAGE, fields: "summary" });
  return (
    <Offers
      query={query}
      offersOf={({ tools }) => tools}
      label={t(serverWords.toolsOf)}
      none={t(serverWords.noTools)}
      line={(tool) => (
        <Line
          key={tool.name}
          name={
            <Link to="/tools" search={{ server: serverId, tool: tool.name }} className={LINK}>
              {tool.mcpName}
            </Link>
          }
          extra={
            <>
              {tool.quarantined !== undefined && <Badge tone="bad">{t(toolWords.notOffered)}</Badge>}
              {tool.pin === "changed" && <Badge tone="warn">{t(toolWords.changed)}</Badge>}
            </>
          }
          description={tool.description}
        />
      )}
    />
  );
}

export function ResourcesTab({ serverId }: { readonly serverId: string }) {
  const query = usePages("listResources", { serverId, limit: PAGE });
  return (
    <Offers
      query={query}
      offersOf={({ resources }) => resources}
      label={t(serverWords.resourcesOf)}
      none={t(serverWords.noResources)}
      line={(resource) => (
        <Line
          key={resource.uri}
          name={
            <Link to="/resources" search={{ server: serverId, uri: resource.uri }} className={LINK}>
              {resource.uri}
            </Link>
          }
          extra={
            <>
              {resource.template && <Badge>{t(serverWords.template)}</Badge>}
              {resource.mimeType !== undefined && <Badge>{resource.mimeType}</Badge>}
            </>
          }
          description={resource.description ?? resource.title ?? resource.name}
        />
      )}
    />
  );
}

export function PromptsTab({ serverId }: { readonly serverId: string }) {
  const query = usePages("listPrompts", { serverId, limit: PAGE });
  return (
    <Offers
      query={query}
      offersOf={({ prompts }) => prompts}
      label={t(serverWords.promptsOf)}
      none={t(serverWords.noPrompts)}
      line={(prompt) => (
        <Line
          key={prompt.name}
          name={
            <Link to="/prompts" search={{ server: serverId, prompt: prompt.name }} className={LINK}>
              {prompt.prompt}
            </Link>
          }
          extra={prompt.arguments.map((argument) => (
            <Badge key={String(argument["name"])}>{String(argument["name"])}</Badge>
          ))}
          description={prompt.description ?? prompt.title}
        />
      )}
    />
  );
}
