import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo } from "react";
import type { SkillInfo } from "../../../../src/contract/skill-schemas.ts";
import { Button } from "../../components/button.tsx";
import { SearchBox, Select } from "../../components/fields.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { shell } from "../../messages/shell.ts";
import { skillWords } from "../../messages/skill-words.ts";
import { usePages } from "../../state/queries.ts";
import { choices, filterSkills, placeOf, shortPath, type SkillFilter } from "./skill-filter.ts";
import { SkillList } from "./skill-list.tsx";
import { KIND_WORDS, sourceWord } from "./skill-words.ts";

const ScanView = lazy(async () => ({ default: (await import("./scan-view.tsx")).ScanView }));
const SkillDetailPanel = lazy(async () => ({ default: (await import("./skill-detail.tsx")).SkillDetailPanel }));

const route = getRouteApi("/skills");
/** In the address: the panel is open and no folder was named yet. */
const NO_FOLDER = "1";

export function SkillsView() {
  const { scan } = route.useSearch();
  const navigate = route.useNavigate();
  if (scan === undefined) return <Skills onScan={() => void navigate({ search: { scan: NO_FOLDER } })} />;
  return (
    <Suspense fallback={<Skeleton lines={8} />}>
      <ScanView
        path={scan === NO_FOLDER ? undefined : scan}
        onPath={(path) => void navigate({ search: { scan: path } })}
        onDone={() => void navigate({ search: {} })}
      />
    </Suspense>
  );
}

function Skills({ onScan }: { readonly onScan: () => void }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const query = useAllSkills();
  const change = (next: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const clear = (): void => change({ q: undefined, kind: undefined, source: undefined, from: undefined });
  const total = query.data?.pages[0]?.total;
  const scan = (
    <Button variant="primary" icon="plus" onClick={onScan}>
      {t(skillWords.scanFolder)}
    </Button>
  );
  const skills = useMemo(() => query.data?.pages.flatMap((page) => page.skills) ?? [], [query.data]);
  const shown = useMemo(() => filterSkills(skills, search), [skills, search]);
  return (
    <Page
      title={t(shell.skills)}
      actions={scan}
      {...(total === undefined
        ? {}
        : {
            description:
              shown.length < skills.length
                ? t(skillWords.countShown, { shown: shown.length, count: total })
                : t(skillWords.count, { count: total }),
          })}
    >
      <Split
        onClose={() => void navigate({ search: (old) => ({ ...old, skill: undefined, tab: undefined }) })}
        detailLabel={t(skillWords.details)}
        detail={
          search.skill === undefined ? undefined : (
            <Suspense fallback={<Skeleton lines={8} label={t(skillWords.loadingOne)} />}>
              <SkillDetailPanel
                key={search.skill}
                skillId={search.skill}
                tab={search.tab}
                onTab={(tab) => change({ tab })}
                onClose={() => void navigate({ search: (old) => ({ ...old, skill: undefined, tab: undefined }) })}
              />
            </Suspense>
          )
        }
        list={
          <Loaded query={query} skeleton={<Skeleton lines={8} label={t(skillWords.loading)} />}>
            {() =>
              skills.length === 0 ? (
                <div className="rounded-lg border border-line bg-panel">
                  <Empty title={t(skillWords.none)} icon="skills" action={scan}>
                    {t(skillWords.noneHow)}
                  </Empty>
                </div>
              ) : (
                <div className="flex flex-col gap-3">
                  <SkillFilters skills={skills} filter={search} onChange={change} />
                  {shown.length === 0 ? (
                    <div className="rounded-lg border border-line bg-panel">
                      <Empty
                        title={t(skillWords.noneFit)}
                        icon="search"
                        action={<Button onClick={clear}>{t(components.clearFilters)}</Button>}
                      />
                    </div>
                  ) : (
                    <SkillList skills={shown} chosen={search.skill} />
                  )}
                </div>
              )
            }
          </Loaded>
        }
      />
    </Page>
  );
}

/** All pages one after another: the filters count over everything. */
function useAllSkills() {
  const query = usePages("listSkills", { limit: 500 });
  const { hasNextPage, isFetchingNextPage, fetchNextPage, isError } = query;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isError, fetchNextPage]);
  return query;
}

interface FiltersProps {
  readonly skills: readonly SkillInfo[];
  readonly filter: SkillFilter;
  readonly onChange: (next: SkillFilter) => void;
}

function SkillFilters({ skills, filter, onChange }: FiltersProps) {
  const chosen = (value: string): string | undefined => (value === "" ? undefined : value);
  const kinds = choices(
    skills.map((skill) => skill.kind),
    filter.kind,
  );
  const places = choices(skills.map(placeOf), filter.from);
  const sources = choices(
    skills.map((skill) => skill.source),
    filter.source,
  );
  return (
    <Toolbar label={t(components.filters)}>
      <SearchBox label={t(skillWords.find)} value={filter.q ?? ""} onChange={(q) => onChange({ q: chosen(q) })} />
      {kinds.length > 1 && (
        <Select
          aria-label={t(skillWords.kind)}
          value={filter.kind ?? ""}
          options={[
            ["", t(skillWords.allKinds)],
            ...kinds.map(([kind, count]) => [kind, `${isKind(kind) ? t(KIND_WORDS[kind]) : kind} (${count})`] as const),
          ]}
          onChange={(kind) => onChange({ kind: chosen(kind) })}
        />
      )}
      {sources.length > 1 && (
        <Select
          aria-label={t(skillWords.source)}
          value={filter.source ?? ""}
          options={[
            ["", t(skillWords.allSources)],
            ...sources.map(([source, count]) => [source, `${sourceWord(source)} (${count})`] as const),
          ]}
          onChange={(source) => onChange({ source: chosen(source) })}
        />
      )}
      {places.length > 1 && (
        <Select
          aria-label={t(skillWords.place)}
          value={filter.from ?? ""}
          options={[
            ["", t(skillWords.allPlaces)],
            ...places.map(([place, count]) => [place, `${shortPath(place)} (${count})`] as const),
          ]}
          onChange={(from) => onChange({ from: chosen(from) })}
        />
      )}
    </Toolbar>
  );
}

function isKind(kind: string): kind is SkillInfo["kind"] {
  return Object.hasOwn(KIND_WORDS, kind);
}
