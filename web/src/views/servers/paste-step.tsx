import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Field, TextArea } from "../../components/fields.tsx";
import { FailureBox } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import { useChange } from "../../state/queries.ts";
import type { ParsedServer } from "./server-dialog.tsx";

const EXAMPLE = `npx -y @modelcontextprotocol/server-filesystem ~/notes
https://example.com/mcp
{ "files": { "command": "npx", "args": ["…"] } }`;

/** Reads what was pasted. With no servers the form begins empty. */
export function PasteStep({ onRead }: { readonly onRead: (servers: readonly ParsedServer[]) => void }) {
  const [text, setText] = useState("");
  const parse = useChange("parseServers", { onSuccess: (parsed) => onRead(parsed.servers) });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() !== "") parse.mutate({ text });
  };
  return (
    <form className="flex flex-col gap-3" onSubmit={submit}>
      <Field label={t(serverWords.pasteLabel)} hint={t(serverWords.pasteHint)}>
        {(attributes) => (
          <TextArea
            {...attributes}
            mono
            autoFocus
            rows={8}
            value={text}
            placeholder={EXAMPLE}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
            }}
          />
        )}
      </Field>
      {parse.error !== null && <FailureBox error={parse.error} />}
      <div className="flex flex-wrap justify-end gap-2">
        <Button variant="ghost" onClick={() => onRead([])}>
          {t(serverWords.byHand)}
        </Button>
        <Button type="submit" variant="primary" busy={parse.isPending} disabled={text.trim() === ""}>
          {t(serverWords.continue)}
        </Button>
      </div>
    </form>
  );
}
