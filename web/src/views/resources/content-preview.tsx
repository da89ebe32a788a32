/** Text, Markdown, JSON, pictures, sounds and files of a resource or a prompt. Nothing of it runs. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { bytesText } from "../../text.ts";
import { markOf } from "../tools/result-content.ts";
import { fileName, type Previewed } from "./preview.ts";

export function GuardMark({ result }: { readonly result: Readonly<Record<string, unknown>> }) {
  const mark = markOf(result);
  if (mark === undefined) return null;
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      <Badge title={t(resources.untrustedWhy)}>{t(resources.untrusted)}</Badge>
      {mark.findings.map(({ code, severity }) => (
        <Badge key={`${code} ${severity}`} tone={severity === "note" ? "info" : "warn"}>
          {t(resources.finding, { code })}
        </Badge>
      ))}
    </div>
  );
}

export function ContentPreview({ previewed }: { readonly previewed: Previewed }) {
  const { uri, preview } = previewed;
  switch (preview.kind) {
    case "markdown":
      return <TwoWays text={preview.text} view={<Markdown text={preview.text} />} />;
    case "text":
      return preview.json === undefined ? (
        <Code text={preview.text} label={t(resources.content)} wrap copy className="max-h-[60dvh]" />
      ) : (
        <TwoWays text={preview.text} view={<JsonTree value={preview.json} label={t(resources.content)} keysOnly />} />
      );
    case "image":
      return (
        <img
          src={preview.source}
          alt={t(resources.image, { uri })}
          className="max-h-[60dvh] max-w-full self-start rounded-sm border border-line bg-sunken"
        />
      );
    case "audio":
      return (
        <audio controls src={preview.source} aria-label={t(resources.sound, { uri })} className="w-full max-w-md" />
      );
    case "file":
      return <FileLinks uri={uri} type={preview.type} bytes={preview.bytes} />;
    case "link":
      return (
        <p className="min-w-0 break-words">
          {preview.name}{" "}
          <Link to="/resources" search={{ uri: preview.uri }} className="text-accent hover:underline">
            {t(resources.openResource)}
          </Link>
        </p>
      );
    case "unknown":
      return (
        <div>
          <p className="text-sm text-soft">{t(resources.otherContent, { type: preview.type })}</p>
          <JsonTree value={preview.value} label={t(resources.otherContent, { type: preview.type })} depth={1} />
        </div>
      );
  }
}

function TwoWays({ text, view }: { readonly text: string; readonly view: React.ReactNode }) {
  const [raw, setRaw] = useState(false);
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <div>
        <Button size="sm" variant="ghost" onClick={() => setRaw(!raw)}>
          {t(raw ? resources.asView : resources.asText)}
        </Button>
      </div>
      {raw ? <Code text={text} label={t(resources.content)} wrap copy className="max-h-[60dvh]" /> : view}
    </div>
  );
}

const PDF = "application/pdf";

interface FileLinksProps {
  readonly uri: string;
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

function FileLinks({ uri, type, bytes }: FileLinksProps) {
  // Only as a PDF or as bytes: a document of another type would run as a part of this page.
  const open = (as: string, act: (address: string) => void): void => {
    const address = URL.createObjectURL(new Blob([bytes], { type: as }));
    act(address);
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };
  const save = (address: string): void => {
    const link = document.createElement("a");
    link.href = address;
    link.download = fileName(uri, type);
    link.click();
  };
  return (
    <div className="flex flex-wrap items-center gap-2">
      <span className="text-soft">{t(resources.bytes, { size: bytesText(bytes.length), type })}</span>
      {type === PDF && (
        <Button
          size="sm"
          icon="link"
          onClick={() => open(PDF, (address) => window.open(address, "_blank", "noopener"))}
        >
          {t(resources.openPdf)}
        </Button>
      )}
      <Button size="sm" icon="download" onClick={() => open("application/octet-stream", save)}>
        {t(resources.download)}
      </Button>
    </div>
  );
}
