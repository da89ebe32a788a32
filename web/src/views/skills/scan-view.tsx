/** Looks into a folder for skills, and imports those that are chosen. */
import { type FormEvent, useEffect, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Field, TextInput } from "../../components/fields.tsx";
import { Icon } from "../../components/icon.tsx";
import { Page, Section } from "../../components/page.tsx";
import { Empty, FailureBox, Skeleton } from "../../components/states.tsx";
import { useOperation } from "../../state/queries.ts";
import { orderPlaces } from "./scan-choice.ts";
import { ScanResults } from "./scan-results.tsx";

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
      title="Import skills"
      description="A scan reads every skill in a folder and its subfolders. It changes nothing."
      actions={
        <Button icon="back" onClick={onDone}>
          All skills
        </Button>
      }
    >
      <Section title="Scan a folder">
        <form onSubmit={submit}>
          <Field label="Folder" hint="On the hub's machine; ~ is the home of its user.">
            {(attributes) => (
              <div className="flex gap-2">
                <TextInput
                  {...attributes}
                  mono
                  value={text}
                  placeholder="~/.openclaw/workspace/skills"
                  onChange={(event) => setText(event.target.value)}
                />
                <Button
                  type="submit"
                  variant="primary"
                  icon="search"
                  busy={query.isFetching}
                  disabled={text.trim() === ""}
                >
                  Scan
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
            <Section title="Looking…">
              <Skeleton lines={8} label="Scanning the folder" />
            </Section>
          ) : (
            <FailureBox error={query.error} onRetry={() => void query.refetch()} />
          )
        ) : query.data.totalScanned === 0 ? (
          <Section title="Nothing found">
            <Empty title="No skills in this folder" icon="search">
              A skill is a folder with a file SKILL.md. Nothing below{" "}
              <code className="font-mono break-all">{path}</code> is one.
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
        Usual places
      </Button>
    );
  return (
    <div className="mt-4">
      <h3 className="mb-1.5 text-sm font-medium text-soft">Usual places</h3>
      <ul aria-label="Usual places" className="grid gap-2 sm:grid-cols-2 xl:grid-cols-3">
        {shown.map((place) => (
          <li key={place.path}>
            <button
              type="button"
              onClick={() => onChoose(place.path)}
              className="flex h-full w-full items-center gap-2.5 rounded-md border border-line px-3 py-1.5 text-left hover:bg-hover"
            >
              <Icon
                name={place.exists ? "check" : "close"}
                className={`size-4 ${place.exists ? "text-ok" : "text-faint"}`}
              />
              <span className="min-w-0">
                <span className="block">
                  {place.label}
                  {!place.exists && <span className="text-sm text-faint"> · does not exist</span>}
                </span>
                <span className="block font-mono text-sm break-all text-soft">{place.path}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {more.length > 0 && (
        <Button size="sm" variant="ghost" className="mt-1.5" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer places" : `Show ${more.length} more places`}
        </Button>
      )}
    </div>
  );
}
