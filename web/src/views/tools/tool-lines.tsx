/** The list of tools: a line each, below the server that has them. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { VerdictBadge, ruleText } from "../../components/review-change.tsx";
import { LINE_HEIGHT, VirtualList } from "../../components/virtual-list.tsx";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { numberText } from "../../text.ts";
import { effectOf } from "./effect.ts";
import { PinBadge } from "./pin-badge.tsx";

interface ToolLinesProps {
  readonly tools: readonly ToolInfo[];
  /** In the order of servers; else by how well they fit. */
  readonly grouped: boolean;
  readonly chosen: string | undefined;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (names: readonly string[], isOn: boolean) => void;
  readonly onServerRules: (serverId: string) => void;
  readonly onEnd: (() => void) | undefined;
  readonly none: ReactNode;
}

type Line = { readonly tool: ToolInfo } | { readonly server: string; readonly tools: readonly ToolInfo[] };

export function ToolLines(props: ToolLinesProps) {
  const { tools, grouped, chosen, selected, onSelect, onServerRules, onEnd, none } = props;
  const lines = useMemo(() => (grouped ? linesOf(tools) : tools.map((tool) => ({ tool }))), [tools, grouped]);
  return (
    <div className="@container overflow-hidden rounded-lg border border-line bg-panel">
      {tools.length === 0 ? (
        none
      ) : (
        <VirtualList
          label={t(toolWords.title)}
          count={lines.length}
          lineHeight={LINE_HEIGHT}
          fixed
          lineKey={(index) => keyOf(lines[index], index)}
          onEnd={onEnd}
          className="max-h-[calc(100dvh-13rem)]"
          line={(index) => {
            const line = lines[index];
            if (line === undefined) return null;
            if (!("tool" in line))
              return (
                <ServerLine
                  line={line}
                  selected={selected}
                  onSelect={onSelect}
                  onRules={() => onServerRules(line.server)}
                />
              );
            const { tool } = line;
            return (
              <ToolLine
                tool={tool}
                isChosen={tool.name === chosen}
                isSelected={selected.has(tool.name)}
                showsServer={!grouped}
                onSelect={(isOn) => onSelect([tool.name], isOn)}
              />
            );
          }}
        />
      )}
    </div>
  );
}

function keyOf(line: Line | undefined, index: number): string {
  if (line === undefined) return String(index);
  return "tool" in line ? `${line.tool.serverId} ${line.tool.name}` : `server ${line.server}`;
}

function linesOf(tools: readonly ToolInfo[]): readonly Line[] {
  const groups = Map.groupBy(tools, ({ serverId }) => serverId);
  return [...groups].flatMap(([server, own]) => [{ server, tools: own }, ...own.map((tool) => ({ tool }))]);
}

interface ServerLineProps {
  readonly line: { readonly server: string; readonly tools: readonly ToolInfo[] };
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (names: readonly string[], isOn: boolean) => void;
  readonly onRules: () => void;
}

function ServerLine({ line: { server, tools }, selected, onSelect, onRules }: ServerLineProps) {
  const names = tools.filter(({ quarantined }) => quarantined === undefined).map(({ name }) => name);
  const count = names.filter((name) => selected.has(name)).length;
  return (
    <div className="flex h-line items-center gap-2 border-b border-line bg-sunken px-3">
      <input
        type="checkbox"
        aria-label={t(toolWords.selectAllOf, { server })}
        checked={count > 0 && count === names.length}
        ref={(box) => {
          if (box !== null) box.indeterminate = count > 0 && count < names.length;
        }}
        onChange={(event) => onSelect(names, event.target.checked)}
        className="size-4 accent-accent"
      />
      <span className="truncate text-sm font-semibold">{server}</span>
      <span className="text-sm text-soft tabular-nums">{numberText(tools.length)}</span>
      <Button
        size="sm"
        variant="ghost"
        className="ml-auto"
        aria-label={t(toolWords.rulesOf, { server })}
        onClick={onRules}
      >
        {t(toolWords.rules)}
      </Button>
    </div>
  );
}

interface ToolLineProps {
  readonly tool: ToolInfo;
  readonly isChosen: boolean;
  readonly isSelected: boolean;
  readonly showsServer: boolean;
  readonly onSelect: (isOn: boolean) => void;
}

function ToolLine({ tool, isChosen, isSelected, showsServer, onSelect }: ToolLineProps) {
  const { access, quarantined } = tool;
  const isDenied = access?.verdict === "deny";
  const rule = access?.rule ?? undefined;
  return (
    <div
      className={`flex h-line items-center gap-2 border-b border-line px-3 ${isChosen ? "bg-accent-wash" : isSelected ? "bg-hover" : "hover:bg-hover"}`}
    >
      <input
        type="checkbox"
        aria-label={t(toolWords.select, { name: tool.name })}
        checked={isSelected}
        disabled={quarantined !== undefined}
        onChange={(event) => onSelect(event.target.checked)}
        className="size-4 shrink-0 accent-accent"
      />
      <Link
        from="/tools"
        to="/tools"
        search={(old) => ({ ...old, tool: tool.name })}
        aria-current={isChosen ? "true" : undefined}
        className="flex h-full min-w-0 flex-1 items-center gap-2 -outline-offset-2"
      >
        <span
          className={`max-w-full shrink truncate font-mono text-sm @3xl:shrink-0 @3xl:max-w-96 ${isDenied ? "text-faint" : "font-medium"}`}
        >
          {tool.name}
        </span>
        <span className={`hidden min-w-0 flex-1 truncate text-sm @3xl:block ${isDenied ? "text-faint" : "text-soft"}`}>
          {isDenied && rule !== undefined ? ruleText(rule) : (tool.description ?? tool.title ?? "")}
        </span>
        <span className="ml-auto flex shrink-0 items-center gap-1">
          {showsServer && <span className="hidden text-sm text-faint @lg:inline">{tool.serverId}</span>}
          {quarantined !== undefined && <Badge tone="bad">{t(toolWords.notOffered)}</Badge>}
          {(tool.pin === "changed" || tool.pin === "new") && <PinBadge pin={tool.pin} />}
          {access !== undefined && access.verdict !== "allow" && (
            <VerdictBadge verdict={access.verdict} title={rule === undefined ? t(rules.noRule) : ruleText(rule)} />
          )}
          <span className="flex justify-end @md:w-24">
            <EffectBadge tool={tool} />
          </span>
        </span>
      </Link>
    </div>
  );
}

const EFFECTS = {
  read: { word: toolWords.reads, meaning: toolWords.readsMeaning, tone: "ok" },
  write: { word: toolWords.writes, meaning: toolWords.writesMeaning, tone: "neutral" },
  destructive: { word: toolWords.destroys, meaning: toolWords.destroysMeaning, tone: "bad" },
} as const;

/** The effect of the tool as its server declares it, unchecked, or as the config corrects it. */
export function EffectBadge({ tool }: { readonly tool: ToolInfo }) {
  const { word, meaning, tone } = EFFECTS[effectOf(tool.annotations)];
  return (
    <Badge tone={tone} title={t(meaning)}>
      {t(word)}
    </Badge>
  );
}
