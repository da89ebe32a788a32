/** A result: texts, trees, pictures, sounds, resources, and what the guard says of it. */
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { useChange } from "../../state/queries.ts";
import { bytesText } from "../../text.ts";
import { blocksOf, resourceShown, markOf, type Shown } from "./result-content.ts";
import type { ToolResult } from "./run-tool.ts";

export function ResultView({ result }: { readonly result: ToolResult }) {
  const mark = markOf(result);
  const structured = result.structuredContent;
  return (
    <div
      className={`flex flex-col gap-3 rounded-md border p-3 ${result.isError === true ? "border-bad" : "border-line"}`}
    >
      {mark !== undefined && (
        <div className="flex flex-wrap items-center gap-1.5">
          <Badge title={t(toolWords.untrustedMeaning)}>{t(toolWords.untrusted)}</Badge>
          {mark.findings.map((finding) => (
            <Badge key={`${finding.code} ${finding.severity}`} tone={finding.severity === "note" ? "info" : "warn"}>
              {t(toolWords.guardFound, { code: finding.code })}
            </Badge>
          ))}
        </div>
      )}
      {structured !== undefined && (
        <div>
          <h3 className="mb-1 text-sm font-medium text-soft">{t(toolWords.structured)}</h3>
          <JsonTree value={structured} label={t(toolWords.structured)} keysOnly />
        </div>
      )}
      {result.content.length === 0 && structured === undefined && (
        <p className="text-soft">{t(toolWords.emptyResult)}</p>
      )}
      {blocksOf(result).map((shown, index) => (
        <Block key={index} shown={shown} />
      ))}
      <details>
        <summary className="text-sm text-soft">{t(toolWords.fullResponse)}</summary>
        <Code
          text={JSON.stringify(result, undefined, 2)}
          label={t(toolWords.fullResponseJson)}
          copy
          className="mt-2 max-h-96"
        />
      </details>
    </div>
  );
}

function Block({ shown }: { readonly shown: Shown }) {
  switch (shown.kind) {
    case "text":
      return <TextBlock text={shown.text} json={shown.json} />;
    case "image":
      return (
        <img
          src={shown.source}
          alt={t(toolWords.resultOfTool, { label: shown.label })}
          className="max-h-96 max-w-full self-start rounded-sm border border-line bg-sunken"
        />
      );
    case "audio":
      return (
        <audio
          controls
          src={shown.source}
          aria-label={t(toolWords.resultOfTool, { label: shown.label })}
          className="w-full max-w-md"
        />
      );
    case "link":
      return <ResourceLink uri={shown.uri} name={shown.name} description={shown.description} />;
    case "resource":
      return (
        <div className="rounded-md border border-line">
          <p className="border-b border-line px-3 py-1.5 font-mono text-sm break-all text-soft">{shown.uri}</p>
          <div className="p-3">
            <Block shown={shown.shown} />
          </div>
        </div>
      );
    case "bytes":
      return (
        <p className="text-soft">
          <RichText
            message={toolWords.cannotShow}
            values={{ size: bytesText(shown.size), type: <span className="font-mono text-sm">{shown.type}</span> }}
          />
        </p>
      );
    case "unknown":
      return (
        <div>
          <p className="text-sm text-soft">{t(toolWords.contentOfType, { type: shown.type })}</p>
          <JsonTree value={shown.value} label={t(toolWords.contentOfType, { type: shown.type })} depth={1} />
        </div>
      );
  }
}

function TextBlock({ text, json }: { readonly text: string; readonly json: unknown }) {
  const [raw, setRaw] = useState(json === undefined);
  return (
    <div className="flex flex-col gap-1">
      {json !== undefined && (
        <div>
          <Button size="sm" variant="ghost" aria-pressed={raw} onClick={() => setRaw(!raw)}>
            {t(raw ? toolWords.asTree : toolWords.asText)}
          </Button>
        </div>
      )}
      {raw ? (
        <Code text={text} label={t(toolWords.resultText)} wrap copy className="max-h-[60dvh]" />
      ) : (
        <JsonTree value={json} label={t(toolWords.resultTextJson)} keysOnly />
      )}
    </div>
  );
}

interface ResourceLinkProps {
  readonly uri: string;
  readonly name: string;
  readonly description: string | undefined;
}

function ResourceLink({ uri, name, description }: ResourceLinkProps) {
  const read = useChange("readResource");
  return (
    <div className="rounded-md border border-line p-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <div className="min-w-0">
          <p className="font-medium break-words">{name}</p>
          {name !== uri && <p className="font-mono text-sm break-all text-soft">{uri}</p>}
          {description !== undefined && <p className="text-sm break-words text-soft">{description}</p>}
        </div>
        <Button size="sm" busy={read.isPending} onClick={() => read.mutate({ uri })}>
          {t(toolWords.readIt)}
        </Button>
      </div>
      {read.error !== null && <FailureBox error={read.error} />}
      {read.data?.contents.map((content, index) => (
        <div key={index} className="mt-2">
          <Block shown={resourceShown(content)} />
        </div>
      ))}
    </div>
  );
}
