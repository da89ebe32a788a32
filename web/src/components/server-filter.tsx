import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { useOperation } from "../state/queries.ts";
import { Select } from "./fields.tsx";

interface ServerFilterProps {
  readonly value: string | undefined;
  readonly onChange: (server: string | undefined) => void;
}

export function ServerFilter({ value, onChange }: ServerFilterProps) {
  const servers = useOperation("listServers", { limit: 1000 });
  const known = servers.data?.servers.map((server) => [server.id, server.name] as const) ?? [];
  // In-process tools and skills are sources without a server; one from the address stays choosable.
  const extra = value === undefined || known.some(([id]) => id === value) ? [] : [[value, value] as const];
  return (
    <Select
      aria-label={t(components.server)}
      value={value ?? ""}
      options={[["", t(components.allServers)], ...known, ...extra]}
      onChange={(id) => onChange(id === "" ? undefined : id)}
    />
  );
}
