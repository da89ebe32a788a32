/** How an agent client is connected to this hub. */
import type { ReactNode } from "react";
import type { ClientSnippet } from "../../../../src/contract/settings-schemas.ts";
import { Code } from "../../components/code.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { ConnectClientButton } from "./connect-client.tsx";
import { useOperation } from "../../state/queries.ts";

interface ClientsTabProps {
  readonly client: string | undefined;
  readonly onClient: (id: string) => void;
}

export function ClientsTab({ client, onClient }: ClientsTabProps) {
  const query = useOperation("clientSnippets", {});
  return (
    <Loaded query={query} skeleton={<Skeleton lines={6} label="Loading the clients" />}>
      {({ clients }) => {
        const shown = clients.find(({ id }) => id === client) ?? clients[0];
        if (shown === undefined) return <Empty title="No client is known" icon="plug" />;
        return (
          <div className="flex max-w-3xl flex-col gap-4 p-4">
            <div>
              <h2 className="font-semibold">Connect a client</h2>
              <p className="text-soft">Agents in these programs then get every tool and skill of this hub.</p>
            </div>
            <Field label="Client">
              {(attributes) => (
                <Select
                  {...attributes}
                  value={shown.id}
                  options={clients.map(({ id, title }) => [id, title] as const)}
                  onChange={onClient}
                />
              )}
            </Field>
            <Snippet key={shown.id} client={shown} />
          </div>
        );
      }}
    </Loaded>
  );
}

function Snippet({ client }: { readonly client: ClientSnippet }) {
  return (
    <>
      <Step title="By itself">
        <p className="mb-2 text-soft">On the machine of the client. Other entries of its file stay as they are.</p>
        {client.file !== null && (
          <div className="mb-3">
            <ConnectClientButton client={client} />
          </div>
        )}
        <Code text={client.command} label={`Command for ${client.title}`} copy wrap />
      </Step>
      <Step title="By hand">
        <p className="mb-2 text-soft">
          {client.file === null ? (
            "Put this into its config file."
          ) : (
            <>
              Put this into <code className="font-mono text-sm break-all">{client.file}</code>.
            </>
          )}
          {client.snippet.includes("<token>") && " Write a token of the config in place of <token>."}
        </p>
        <Code text={client.snippet.trimEnd()} label={`Entry for ${client.title}`} copy />
      </Step>
    </>
  );
}

function Step({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="min-w-0">
      <h3 className="mb-1 font-semibold">{title}</h3>
      {children}
    </section>
  );
}
