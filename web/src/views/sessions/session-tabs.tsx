import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { SessionDetail } from "../../../../src/contract/activity-schemas.ts";
import { SearchBox } from "../../components/fields.tsx";
import { Empty } from "../../components/states.tsx";
import { LINE_HEIGHT, VirtualList } from "../../components/virtual-list.tsx";
import { t } from "../../messages/messages.ts";
import { sessionWords } from "../../messages/session-words.ts";

interface TabProps {
  readonly session: SessionDetail;
}

/** So many are seen at a glance. */
const FEW = 12;
const NAME = "flex h-9 items-center border-b border-line px-4 font-mono text-sm -outline-offset-2";

export function ToolsTab({ session }: TabProps) {
  const [text, setText] = useState("");
  const { tools } = session;
  if (tools.length === 0)
    return <Empty title={t(sessionWords.noTools)}>{session.closedAt !== null && t(sessionWords.closedNoTools)}</Empty>;
  const words = text.toLowerCase();
  const shown = tools.filter((tool) => tool.toLowerCase().includes(words));
  return (
    <>
      {tools.length > FEW && (
        <div className="border-b border-line px-4 py-2">
          <SearchBox label={t(sessionWords.findTool)} value={text} onChange={setText} className="max-w-80" />
        </div>
      )}
      {shown.length === 0 ? (
        <Empty title={t(sessionWords.noToolFits)} icon="search" />
      ) : (
        <VirtualList
          label={t(sessionWords.seenTools)}
          count={shown.length}
          lineHeight={LINE_HEIGHT}
          fixed
          lineKey={(index) => shown[index] ?? String(index)}
          className="max-h-[60dvh]"
          line={(index) => (
            <Link to="/tools" search={{ tool: shown[index] ?? "" }} className={`${NAME} text-accent hover:bg-hover`}>
              <span className="truncate">{shown[index]}</span>
            </Link>
          )}
        />
      )}
    </>
  );
}

export function SkillsTab({ session }: TabProps) {
  if (session.activeSkills.length === 0)
    return <Empty title={t(sessionWords.noSkills)}>{t(sessionWords.noSkillsHow)}</Empty>;
  return (
    <ul aria-label={t(sessionWords.activeSkills)} className="max-h-[60dvh] overflow-y-auto">
      {session.activeSkills.map((name) => (
        <li key={name}>
          <Link to="/skills" search={{ q: name }} className={`${NAME} text-accent hover:bg-hover`}>
            <span className="truncate">{name}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
