/** Tools, resources and prompts of one server. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Empty, Loaded } from "../../components/states.tsx";
import { usePages } from "../../state/queries.ts";

const PAGE = 100;

interface MoreProps {
  readonly query: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => Promise<unknown>;
  };
}

function More({ query }: MoreProps) {
  if (!query.hasNextPage) return null;
  return (
    <div className="p-3 text-center">
      <Button size="sm" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        Show more
      </Button>
    </div>
  );
}

function Lines({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <ul aria-label={label} className="max-h-[60dvh] divide-y divide-line overflow-y-auto">
      {children}
    </ul>
  );
}

function Line({
  name,
  extra,
  description,
}: {
  readonly name: ReactNode;
  readonly extra?: ReactNode;
  readonly description: string | undefined;
}) {
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
    <Loaded query={query}>
      {({ pages }) => {
        const tools = pages.flatMap((page) => page.tools);
        if (tools.length === 0) return <Empty title="No tools">The server offers none, or is not connected.</Empty>;
        return (
          <>
            <Lines label="Tools of this server">
              {tools.map((tool) => (
                <Line
                  key={tool.name}
                  name={
                    <Link
                      to="/tools"
                      search={{ server: serverId, tool: tool.name }}
                      className="text-accent hover:underline"
                    >
                      {tool.mcpName}
                    </Link>
                  }
                  extra={
                    <>
                      {tool.quarantined !== undefined && <Badge tone="bad">not offered</Badge>}
                      {tool.pin === "changed" && <Badge tone="warn">changed</Badge>}
                    </>
                  }
                  description={tool.description}
                />
              ))}
            </Lines>
            <More query={query} />
          </>
        );
      }}
    </Loaded>
  );
}

export function ResourcesTab({ serverId }: { readonly serverId: string }) {
  const query = usePages("listResources", { serverId, limit: PAGE });
  return (
    <Loaded query={query}>
      {({ pages }) => {
        const resources = pages.flatMap((page) => page.resources);
        if (resources.length === 0)
          return <Empty title="No resources">The server offers none, or is not connected.</Empty>;
        return (
          <>
            <Lines label="Resources of this server">
              {resources.map((resource) => (
                <Line
                  key={resource.uri}
                  name={
                    <Link
                      to="/resources"
                      search={{ server: serverId, uri: resource.uri }}
                      className="text-accent hover:underline"
                    >
                      {resource.uri}
                    </Link>
                  }
                  extra={
                    <>
                      {resource.template && <Badge>template</Badge>}
                      {resource.mimeType !== undefined && <Badge>{resource.mimeType}</Badge>}
                    </>
                  }
                  description={resource.description ?? resource.title ?? resource.name}
                />
              ))}
            </Lines>
            <More query={query} />
          </>
        );
      }}
    </Loaded>
  );
}

export function PromptsTab({ serverId }: { readonly serverId: string }) {
  const query = usePages("listPrompts", { serverId, limit: PAGE });
  return (
    <Loaded query={query}>
      {({ pages }) => {
        const prompts = pages.flatMap((page) => page.prompts);
        if (prompts.length === 0) return <Empty title="No prompts">The server offers none, or is not connected.</Empty>;
        return (
          <>
            <Lines label="Prompts of this server">
              {prompts.map((prompt) => (
                <Line
                  key={prompt.name}
                  name={
                    <Link
                      to="/prompts"
                      search={{ server: serverId, prompt: prompt.name }}
                      className="text-accent hover:underline"
                    >
                      {prompt.prompt}
                    </Link>
                  }
                  extra={prompt.arguments.map((argument) => (
                    <Badge key={String(argument["name"])}>{String(argument["name"])}</Badge>
                  ))}
                  description={prompt.description ?? prompt.title}
                />
              ))}
            </Lines>
            <More query={query} />
          </>
        );
      }}
    </Loaded>
  );
}
