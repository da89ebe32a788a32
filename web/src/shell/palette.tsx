/** Find anything: views, actions, servers, tools, resources, prompts, skills, clients, settings and help, by keyboard. */
import { useNavigate } from "@tanstack/react-router";
import { Dialog } from "radix-ui";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useRef, useState } from "react";
import { Icon, type IconName } from "../components/icon.tsx";
import { PAGES } from "../docs.ts";
import { type Message, t } from "../messages/messages.ts";
import { palette } from "../messages/palette.ts";
import { resources as resourceWords } from "../messages/resources.ts";
import { rules } from "../messages/rules.ts";
import { shell } from "../messages/shell.ts";
import { useOperation } from "../state/queries.ts";
import { bestMatches, type Match } from "./palette-entries.ts";
import { PLACES } from "./places.ts";
import { Key } from "./shortcuts.tsx";
import { useThemeChoice } from "./theme.ts";
import { headingId } from "../views/help/headings.ts";

interface Entry extends Match {
  readonly id: string;
  readonly icon: IconName;
  readonly keys?: readonly string[];
  readonly run: () => void;
}

interface Group {
  readonly title: Message;
  readonly entries: readonly Entry[];
}

interface PaletteProps {
  readonly onClose: () => void;
  readonly onShortcuts: () => void;
}

const PAUSE_MS = 120;

/** The typed text, once the typing pauses. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}

export function Palette({ onClose, onShortcuts }: PaletteProps) {
  const [typed, setTyped] = useState("");
  /** By its id: results that come later move others. */
  const [chosen, setChosen] = useState("");
  const groups = useGroups(useDeferredValue(typed), onShortcuts);
  const entries = groups.flatMap((group) => group.entries);
  const active = Math.max(
    entries.findIndex((entry) => entry.id === chosen),
    0,
  );
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active, typed]);
  const run = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  const press = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    const isDown = event.key === "ArrowDown" || (event.ctrlKey && event.key === "n");
    const isUp = event.key === "ArrowUp" || (event.ctrlKey && event.key === "p");
    if (event.key === "Enter") run(entries[active]);
    else if ((isDown || isUp) && entries.length > 0)
      setChosen(entries[(active + (isDown ? 1 : entries.length - 1)) % entries.length]?.id ?? "");
    else return;
    event.preventDefault();
  };
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-[rgb(8_14_12/55%)]" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed inset-x-2 top-2 z-50 flex max-h-[min(34rem,calc(100dvh-1rem))] flex-col overflow-hidden rounded-xl border border-line bg-panel shadow-float sm:inset-x-auto sm:top-[12dvh] sm:left-1/2 sm:w-[min(40rem,94vw)] sm:-translate-x-1/2"
        >
          <Dialog.Title className="sr-only">{t(palette.title)}</Dialog.Title>
          <div className="flex items-center gap-2 border-b border-line px-4">
            <Icon name="search" className="size-4.5 text-faint" />
            <input
              type="text"
              role="combobox"
              aria-label={t(palette.title)}
              aria-expanded="true"
              aria-controls={`${id}-list`}
              aria-autocomplete="list"
              aria-activedescendant={entries.length === 0 ? undefined : `${id}-${active}`}
              autoComplete="off"
              spellCheck={false}
              placeholder={t(palette.placeholder)}
              value={typed}
              onChange={(event) => {
                setTyped(event.target.value);
                setChosen("");
              }}
              onKeyDown={press}
              className="min-h-12 flex-1 bg-transparent text-base outline-none"
            />
            <Key text="Esc" />
          </div>
          <p role="status" className="sr-only">
            {entries.length === 0 ? t(palette.nothing) : t(palette.count, { count: entries.length })}
          </p>
          <div
            ref={list}
            id={`${id}-list`}
            role="listbox"
            aria-label={t(palette.results)}
            tabIndex={-1}
            className="min-h-0 flex-1 overflow-y-auto p-2"
          >
            {groups.map((group, at) => (
              <div key={group.title.en} role="group" aria-labelledby={`${id}-group-${at}`} className="mb-1.5">
                <div id={`${id}-group-${at}`} className="px-2 py-1 text-xs font-medium text-faint">
                  {t(group.title)}
                </div>
                {group.entries.map((entry) => {
                  const index = entries.indexOf(entry);
                  return (
                    <Option
                      key={entry.id}
                      id={`${id}-${index}`}
                      entry={entry}
                      isActive={index === active}
                      onPoint={() => setChosen(entry.id)}
                      onRun={() => run(entry)}
                    />
                  );
                })}
              </div>
            ))}
          </div>
          {entries.length === 0 && <p className="px-4 pb-8 text-center text-soft">{t(palette.nothing)}</p>}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface OptionProps {
  readonly id: string;
  readonly entry: Entry;
  readonly isActive: boolean;
  readonly onPoint: () => void;
  readonly onRun: () => void;
}

function Option({ id, entry, isActive, onPoint, onRun }: OptionProps) {
  return (
    <div
      id={id}
      role="option"
      aria-selected={isActive}
      onPointerMove={isActive ? undefined : onPoint}
      onClick={onRun}
      className={`flex min-h-9 cursor-pointer items-center gap-2 rounded-md px-2 ${isActive ? "bg-accent-wash text-accent" : ""}`}
    >
      <Icon name={entry.icon} className={`size-4 ${isActive ? "" : "text-faint"}`} />
      <span className="max-w-[60%] shrink-0 truncate">{entry.text}</span>
      {entry.more !== undefined && (
        <span className={`min-w-0 flex-1 truncate text-sm ${isActive ? "" : "text-faint"}`}>{entry.more}</span>
      )}
      {entry.keys !== undefined && (
        <span className="ml-auto flex gap-1">
          {entry.keys.map((key) => (
            <Key key={key} text={key} />
          ))}
        </span>
      )}
    </div>
  );
}

const SETTINGS = [
  ["config", palette.config],
  ["policy", palette.policy],
  ["roles", rules.roles],
  ["tokens", rules.tokens],
  ["clients", palette.clients],
] as const;

const FEW = 5;
const SOME = 8;

function useGroups(typed: string, onShortcuts: () => void): readonly Group[] {
  const navigate = useNavigate();
  const [theme, chooseTheme] = useThemeChoice();
  const text = typed.trim();
  const q = usePaused(text);
  const isAsked = { enabled: q !== "", keep: true };
  const servers = useOperation("listServers", { q, limit: FEW }, isAsked);
  const tools = useOperation("listTools", { q, limit: SOME, fields: "summary" }, isAsked);
  const resources = useOperation("listResources", { q, limit: FEW }, isAsked);
  const prompts = useOperation("listPrompts", { q, limit: FEW }, isAsked);
  const skills = useOperation("listSkills", { q, limit: FEW }, isAsked);
  const clients = useOperation("clientSnippets", {});
  const config = useOperation("getConfig", {}, { enabled: q !== "" });

  const views: readonly Entry[] = [
    ...PLACES.map(({ to, label, icon, key }) => ({
      ...{ id: to, icon, text: t(label), keys: ["g", key] },
      run: () => void navigate({ to }),
    })),
    ...SETTINGS.map(([tab, label]) => ({
      ...{ id: `/settings ${tab}`, icon: "settings" as const, text: t(label), more: t(shell.settings) },
      run: () => void navigate({ to: "/settings", search: { tab } }),
    })),
  ];
  const isDark = document.documentElement.dataset["theme"] === "dark";
  const actions: readonly Entry[] = [
    {
      ...{ id: "add", icon: "plus", text: t(palette.addServer) },
      run: () => void navigate({ to: "/servers", search: { add: "1" } }),
    },
    {
      ...{ id: "import", icon: "download", text: t(palette.importSkills) },
      run: () => void navigate({ to: "/skills", search: { scan: "1" } }),
    },
    {
      ...{ id: "connect", icon: "plug", text: t(palette.connectClient) },
      run: () => void navigate({ to: "/settings", search: { tab: "clients" } }),
    },
    {
      ...{ id: "explain", icon: "approvals", text: t(palette.explainPolicy) },
      run: () => void navigate({ to: "/settings", search: { tab: "policy" } }),
    },
    {
      ...{ id: "theme", icon: isDark ? "sun" : "moon", text: t(palette.switchTheme), more: theme },
      run: () => chooseTheme(isDark ? "light" : "dark"),
    },
    { id: "shortcuts", icon: "help", text: t(palette.shortcuts), keys: ["?"], run: onShortcuts },
  ];

  const groups: Group[] = [
    { title: palette.goTo, entries: bestMatches(views, text, text === "" ? PLACES.length : FEW) },
    { title: palette.actions, entries: bestMatches(actions, text, FEW + 1) },
  ];
  if (text === "") return groups;
  const found: readonly Group[] = [
    {
      title: shell.servers,
      entries: (servers.data?.servers ?? []).map(({ id, name, state }) => ({
        ...{ id: `server ${id}`, icon: "servers", text: name, more: name === id ? state : `${id} · ${state}` },
        run: () => void navigate({ to: "/servers", search: { server: id } }),
      })),
    },
    {
      title: shell.tools,
      entries: (tools.data?.tools ?? []).map(({ name, description }) => ({
        ...{ id: `tool ${name}`, icon: "tools", text: name, more: description },
        run: () => void navigate({ to: "/tools", search: { tool: name } }),
      })),
    },
    {
      title: resourceWords.resources,
      entries: (resources.data?.resources ?? []).map(({ uri, name }) => ({
        ...{ id: `resource ${uri}`, icon: "resources", text: name, more: uri },
        run: () => void navigate({ to: "/resources", search: { uri } }),
      })),
    },
    {
      title: resourceWords.prompts,
      entries: (prompts.data?.prompts ?? []).map(({ name, description }) => ({
        ...{ id: `prompt ${name}`, icon: "prompts", text: name, more: description },
        run: () => void navigate({ to: "/prompts", search: { prompt: name } }),
      })),
    },
    {
      title: shell.skills,
      entries: (skills.data?.skills ?? []).map(({ id, name, description }) => ({
        ...{ id: `skill ${id}`, icon: "skills", text: name, more: description },
        run: () => void navigate({ to: "/skills", search: { skill: id } }),
      })),
    },
    {
      title: palette.clients,
      entries: bestMatches(
        (clients.data?.clients ?? []).map(({ id, title }): Entry => ({
          ...{ id: `client ${id}`, icon: "plug", text: title },
          run: () => void navigate({ to: "/settings", search: { tab: "clients", client: id } }),
        })),
        text,
        FEW,
      ),
    },
    {
      title: shell.settings,
      entries: bestMatches(
        (config.data?.values ?? []).map(({ key, value }): Entry => ({
          ...{ id: `setting ${key}`, icon: "settings", text: key, more: shortValue(value) },
          run: () => void navigate({ to: "/settings", search: { tab: "config", q: key } }),
        })),
        text,
        FEW,
      ),
    },
    { title: shell.help, entries: bestMatches(docs(navigate), text, FEW + 1) },
  ];
  return [...groups, ...found].filter(({ entries }) => entries.length > 0);
}

function shortValue(value: unknown): string | undefined {
  return typeof value === "object" ? undefined : JSON.stringify(value);
}

function docs(navigate: ReturnType<typeof useNavigate>): readonly Entry[] {
  return PAGES.flatMap(({ page, title, headings }): Entry[] => [
    { id: `doc ${page}`, icon: "help", text: title, run: () => void navigate({ to: "/help", search: { page } }) },
    ...headings.map((heading, index): Entry => ({
      ...{ id: `doc ${page} ${index}`, icon: "help", text: heading, more: title },
      run: () => void navigate({ to: "/help", search: { page, at: headingId(heading) } }),
    })),
  ]);
}
