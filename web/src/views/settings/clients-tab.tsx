/** How an agent client is connected to this hub. */
import type { ReactNode } from "react";
import type { ClientSnippet } from "../../../../src/contract/settings-schemas.ts";
import { Code } from "../../components/code.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { firstSteps } from "../../messages/first-steps.ts";
import { t } from "../../messages/messages.ts";
import { settings } from "../../messages/settings.ts";
import { ConnectClientButton } from "./connect-client.tsx";
import { useOperation } from "../../state/queries.ts";

interface ClientsTabProps {
  readonly client: string | undefined;
  readonly onClient: (id: string) => void;
}

export function ClientsTab({ client, onClient }: ClientsTabProps) {
  const query = useOperation("clientSnippets", {});
  return (
    <Loaded query={query} skeleton={<Skeleton lines={6} label={t(settings.loadingClients)} />}>
      {({ clients }) => {
        const shown = clients.find(({ id }) => id === client) ?? clients[0];
        if (shown === undefined) return <Empty title={t(settings.noClients)} icon="plug" />;
        return (
          <div className="flex max-w-3xl flex-col gap-4 p-4">
            <div>
              <h2 className="font-semibold">{t(firstSteps.connectClient)}</h2>
              <p className="text-soft">{t(settings.clientsHow)}</p>
            </div>
            <Field label={t(settings.client)}>
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
      <Step title={t(settings.byItself)}>
        <p className="mb-2 text-soft">{t(settings.byItselfHow)}</p>
        {client.file !== null && (
          <div className="mb-3">
            <ConnectClientButton client={client} />
          </div>
        )}
        <Code text={client.command} label={t(firstSteps.command, { client: client.title })} copy wrap />
      </Step>
      <Step title={t(settings.byHand)}>
        <p className="mb-2 text-soft">
          {client.file === null ? (
            t(settings.byHandHow)
          ) : (
            <RichText
              message={settings.byHandFile}
              values={{ file: <code className="font-mono text-sm break-all">{client.file}</code> }}
            />
          )}{" "}
          {client.snippet.includes("<token>") && <RichText message={settings.byHandToken} />}
        </p>
        <Code text={client.snippet.trimEnd()} label={t(settings.entry, { client: client.title })} copy />
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
