/** The output of a server's program and its log messages: with time and level, followed, searched, downloaded. */
import { useEffect, useRef, useState } from "react";
import type { OutputOf } from "../../../../src/contract/operations.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { SearchBox, Select, Switch } from "../../components/fields.tsx";
import { Toolbar } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/states.tsx";
import { activity } from "../../messages/activity.ts";
import { type Message, t } from "../../messages/messages.ts";
import { useOperation } from "../../state/queries.ts";
import { clockText, momentText } from "../../text.ts";

type Line = OutputOf<"getServerLog">["lines"][number];

const FOLLOW_MS = 2000;
type Level = NonNullable<Line["level"]>;
const LEVELS: readonly Level[] = ["debug", "info", "warning", "error"];
const LEVEL_WORDS: Readonly<Record<Level, Message>> = {
  debug: activity.debug,
  info: activity.info,
  warning: activity.warning,
  error: activity.error,
};
const LEVEL_TONES: Readonly<Record<Level, Tone>> = {
  debug: "neutral",
  info: "info",
  warning: "warn",
  error: "bad",
};

export function LogTab({ serverId }: { readonly serverId: string }) {
  const [level, setLevel] = useState("");
  const [text, setText] = useState("");
  const [follows, setFollows] = useState(true);
  const query = useOperation("getServerLog", { serverId }, follows ? { refetchInterval: FOLLOW_MS } : {});
  return (
    <div className="flex flex-col gap-3 p-4">
      <Toolbar label={t(activity.log)}>
        <SearchBox label={t(activity.search)} placeholder={t(activity.search)} value={text} onChange={setText} />
        <Select
          aria-label={t(activity.level)}
          value={level}
          options={[["", t(activity.anyLevel)], ...LEVELS.map((each) => [each, t(LEVEL_WORDS[each])] as const)]}
          onChange={setLevel}
        />
        <Switch label={t(activity.follow)} checked={follows} onChange={setFollows} />
        <Button
          size="sm"
          icon="download"
          disabled={(query.data?.lines.length ?? 0) === 0}
          onClick={() => download(serverId, query.data?.lines ?? [])}
        >
          {t(activity.download)}
        </Button>
      </Toolbar>
      <Loaded query={query}>
        {({ lines }) => {
          const shown = lines.filter(
            (line) => (level === "" || line.level === level) && line.text.toLowerCase().includes(text.toLowerCase()),
          );
          if (lines.length === 0) return <Empty title={t(activity.noOutput)}>{t(activity.outputHere)}</Empty>;
          return shown.length === 0 ? (
            <Empty title={t(activity.nothingFits)} />
          ) : (
            <Lines lines={shown} follows={follows} />
          );
        }}
      </Loaded>
    </div>
  );
}

function Lines({ lines, follows }: { readonly lines: readonly Line[]; readonly follows: boolean }) {
  const list = useRef<HTMLOListElement>(null);
  const last = lines.at(-1)?.seq;
  useEffect(() => {
    if (follows && list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  }, [follows, last]);
  return (
    <>
      <ol
        ref={list}
        tabIndex={0}
        aria-label={t(activity.log)}
        className="max-h-[60dvh] overflow-y-auto rounded-md border border-line bg-sunken py-1 font-mono text-sm"
      >
        {lines.map(({ seq, at, level, text }) => (
          <li key={seq} className="flex gap-x-2 px-3 py-0.5">
            <time dateTime={at} title={momentText(new Date(at))} className="shrink-0 text-faint">
              {clockText(new Date(at))}
            </time>
            <span className="min-w-0 break-words whitespace-pre-wrap">
              {level !== null && level !== "info" && (
                <>
                  <Badge tone={LEVEL_TONES[level]}>{t(LEVEL_WORDS[level])}</Badge>{" "}
                </>
              )}
              {text}
            </span>
          </li>
        ))}
      </ol>
      <p className="text-sm text-faint">{t(activity.lines, { count: lines.length })}</p>
    </>
  );
}

function download(serverId: string, lines: readonly Line[]): void {
  const text = lines.map((line) => `${line.at} ${line.level ?? "-"} ${line.text}\n`).join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = `${serverId.replaceAll(/[^\w.@-]/g, "_")}.log`;
  link.click();
  URL.revokeObjectURL(link.href);
}
