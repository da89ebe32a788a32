/** The cost of tool definitions for a model, for each connected client, and the savings of search mode. */
import { Badge } from "../../components/badge.tsx";
import { Section } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { overview } from "../../messages/overview.ts";
import { useOperation } from "../../state/queries.ts";
import { numberText, shareText } from "../../text.ts";
import { Cell, NumberHead } from "./call-lists.tsx";

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
            <Empty title={t(overview.noClients)} />
          ) : (
            <div tabIndex={0} role="region" aria-label={t(overview.tokens)} className="max-h-80 overflow-auto">
              <table className="w-full text-sm">
                <thead className="sticky top-0 bg-panel text-left text-faint">
                  <tr className="border-b border-line">
                    <th scope="col" className="px-4 py-1.5 font-medium">
                      {t(overview.client)}
                    </th>
                    <NumberHead text={t(overview.offered)} />
                    <NumberHead text={t(overview.whole)} />
                    <NumberHead text={t(overview.withSearch)} />
                    <NumberHead text={t(overview.saves)} />
                  </tr>
                </thead>
                <tbody className="divide-y divide-line">
                  {clients.map(({ client, role, sessions, isSearch, offered, whole, search }) => (
                    <tr key={`${client} ${role ?? ""} ${isSearch} ${offered.tokens}`}>
                      <th scope="row" className="px-4 py-1.5 text-left font-normal break-words">
                        {client}
                        {role !== null && <span className="text-soft"> · {role}</span>}
                        {sessions > 1 && <span className="text-faint"> × {sessions}</span>}{" "}
                        {isSearch && <Badge>{t(overview.searchHere)}</Badge>}
                      </th>
                      <Cell>{numberText(offered.tokens)}</Cell>
                      <Cell>{numberText(whole.tokens)}</Cell>
                      <Cell>{numberText(search.tokens)}</Cell>
                      <Cell>{shareText(Math.max(0, whole.tokens - search.tokens), whole.tokens)}</Cell>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          );
        }}
      </Loaded>
      <p className="border-t border-line px-4 py-2 text-sm text-faint">{t(overview.tokensAbout)}</p>
    </Section>
  );
}
