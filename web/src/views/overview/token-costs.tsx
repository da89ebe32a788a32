/** The cost of tool definitions for a model, for each connected client, and the savings of search mode. */
import { Link } from "@tanstack/react-router";
import { Badge } from "../../components/badge.tsx";
import { Section } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/states.tsx";
import { Cell, RowHead, Table } from "../../components/table.tsx";
import { firstSteps } from "../../messages/first-steps.ts";
import { t } from "../../messages/messages.ts";
import { overview } from "../../messages/overview.ts";
import { useOperation } from "../../state/queries.ts";
import { numberText, shareText } from "../../text.ts";

/** As `api.ts` names it. */
const PAGE_CLIENT = "toolcrib-page";

export function TokenCosts() {
  const query = useOperation("getTokenCosts", {});
  return (
    <Section title={t(overview.tokens)} flush>
      <Loaded query={query}>
        {({ clients: all }) => {
          // This page is no model.
          const clients = all.filter(({ client }) => client !== PAGE_CLIENT);
          return clients.length === 0 ? (
            <Empty
              title={t(overview.noClients)}
              icon="plug"
              action={
                <Link to="/settings" search={{ tab: "clients" }} className="text-accent underline">
                  {t(firstSteps.connectClient)}
                </Link>
              }
            >
              {t(overview.noClientsHow)}
            </Empty>
          ) : (
            <Table
              label={t(overview.tokens)}
              className="max-h-80"
              heads={[
                t(overview.client),
                { number: t(overview.offered) },
                { number: t(overview.whole) },
                { number: t(overview.withSearch) },
                { number: t(overview.saves) },
              ]}
            >
              {clients.map(({ client, role, sessions, isSearch, offered, whole, search }) => (
                <tr key={`${client} ${role ?? ""} ${isSearch} ${offered.tokens}`}>
                  <RowHead>
                    {client}
                    {role !== null && <span className="text-soft"> · {role}</span>}
                    {sessions > 1 && <span className="text-faint"> × {sessions}</span>}{" "}
                    {isSearch && <Badge>{t(overview.searchHere)}</Badge>}
                  </RowHead>
                  <Cell number>{numberText(offered.tokens)}</Cell>
                  <Cell number>{numberText(whole.tokens)}</Cell>
                  <Cell number>{numberText(search.tokens)}</Cell>
                  <Cell number>{shareText(Math.max(0, whole.tokens - search.tokens), whole.tokens)}</Cell>
                </tr>
              ))}
            </Table>
          );
        }}
      </Loaded>
      <p className="border-t border-line px-4 py-2 text-sm text-faint">{t(overview.tokensAbout)}</p>
    </Section>
  );
}
