/** Looks into a folder for skills, and imports those that are chosen. */
import { type FormEvent, useEffect, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Field, TextInput } from "../../components/fields.tsx";
import { Icon } from "../../components/icon.tsx";
import { Page, Section } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, FailureBox, Skeleton } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import { useOperation } from "../../state/queries.ts";
import { orderPlaces } from "./scan-choice.ts";
import { ScanResults } from "./scan-results.tsx";

const FOLDER_EXAMPLE = "~/.openclaw/workspace/skills";

interface ScanViewProps {
  /** The folder that is looked into. */
  readonly path: string | undefined;
  readonly onPath: (path: string) => void;
  readonly onDone: () => void;
}

export function ScanView({ path, onPath, onDone }: ScanViewProps) {
  const [text, setText] = useState(path ?? "");
  useEffect(() => setText(path ?? ""), [path]);
  const query = useOperation("scanSkills", { path: path ?? "" }, { enabled: path !== undefined });
  const scan = (folder: string): void => {
    if (folder === path) void query.refetch();
    else onPath(folder);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() !== "") scan(text.trim());
  };
  return (
    <Page
      title={t(skillWords.importTitle)}
      description={t(skillWords.importHow)}
      actions={
        <Button icon="back" onClick={onDone}>
          {t(skillWords.all)}
        </Button>
      }
    >
      <Section title={t(skillWords.scanFolder)}>
        <form onSubmit={submit}>
          <Field label={t(skillWords.folder)} hint={t(skillWords.folderHow)}>
            {(attributes) => (
              <div className="flex gap-2">
                <TextInput
                  {...attributes}
                  mono
                  value={text}
                  placeholder={FOLDER_EXAMPLE}
                  onChange={(event) => setText(event.target.value)}
                />
                <Button
                  type="submit"
                  variant="primary"
                  icon="search"
                  busy={query.isFetching}
                  disabled={text.trim() === ""}
                >
                  {t(skillWords.scan)}
                </Button>
              </div>
            )}
          </Field>
        </form>
        <Places key={path} folded={query.data !== undefined && query.data.totalScanned > 0} onChoose={scan} />
      </Section>
      {path !== undefined &&
        (query.data === undefined ? (
          query.error === null ? (
            <Section title={t(skillWords.scanning)}>
              <Skeleton lines={8} label={t(skillWords.scanning)} />
            </Section>
          ) : (
            <FailureBox error={query.error} onRetry={() => void query.refetch()} />
          )
        ) : query.data.totalScanned === 0 ? (
          <Section title={t(skillWords.nothingFound)}>
            <Empty title={t(skillWords.noSkillsHere)} icon="search">
              <RichText
                message={skillWords.noSkillsHereHow}
                values={{ path: <code className="font-mono break-all">{path}</code> }}
              />
            </Empty>
          </Section>
        ) : (
          <ScanResults key={path} path={path} found={query.data} onDone={onDone} />
        ))}
    </Page>
  );
}

interface PlacesProps {
  /** Something was found: other places stand back until they are wanted. */
  readonly folded: boolean;
  readonly onChoose: (path: string) => void;
}

function Places({ folded, onChoose }: PlacesProps) {
  const query = useOperation("skillPlaces", {});
  const [all, setAll] = useState(false);
  const [wanted, setWanted] = useState(false);
  const { first, more } = orderPlaces(query.data?.places ?? []);
  const shown = all ? [...first, ...more] : first;
  if (folded && !wanted)
    return (
      <Button size="sm" variant="ghost" icon="right" className="mt-1.5" onClick={() => setWanted(true)}>
        {t(skillWords.usualPlaces)}
      </Button>
    );
  return (
    <div className="mt-4">
      <h3 className="mb-1.5 text-sm font-medium text-soft">{t(skillWords.usualPlaces)}</h3>
      <ul aria-label={t(skillWords.usualPlaces)} className="grid gap-2 sm:grid-cols-2 xl:grid-cols-3">
        {shown.map((place) => (
          <li key={place.path}>
            <button
              type="button"
              onClick={() => onChoose(place.path)}
              className="flex h-full w-full items-center gap-2 rounded-md border border-line px-3 py-1.5 text-left hover:bg-hover"
            >
              <Icon
                name={place.exists ? "check" : "close"}
                className={`size-4 ${place.exists ? "text-ok" : "text-faint"}`}
              />
              <span className="min-w-0">
                <span className="block">
                  {place.label}
                  {!place.exists && <span className="text-sm text-faint"> · {t(skillWords.doesNotExist)}</span>}
                </span>
                <span className="block font-mono text-sm break-all text-soft">{place.path}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {more.length > 0 && (
        <Button size="sm" variant="ghost" className="mt-1.5" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? t(skillWords.fewerPlaces) : t(skillWords.morePlaces, { count: more.length })}
        </Button>
      )}
    </div>
  );
}
