import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Field, TextArea } from "../../components/fields.tsx";
import { FailureBox } from "../../components/states.tsx";
import { useChange } from "../../state/queries.ts";
import type { ParsedServer } from "./server-dialog.tsx";

const EXAMPLE = `npx -y @modelcontextprotocol/server-filesystem ~/notes
https://example.com/mcp
{ "files": { "command": "npx", "args": ["…"] } }`;

/** Reads what was pasted. With no servers the form begins empty. */
export function PasteStep({ onRead }: { readonly onRead: (servers: readonly ParsedServer[]) => void }) {
  const [text, setText] = useState("");
  const parse = useChange("parseServers", { onSuccess: ({ servers }) => onRead(servers) });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() !== "") parse.mutate({ text });
  };
  return (
    <form className="flex flex-col gap-3" onSubmit={submit}>
      <Field
        label="A command, an address or a snippet"
        hint="Snippets of Claude Desktop, Cursor, VS Code, Codex and other clients are recognized, in JSON, YAML or TOML."
      >
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
          Fill in by hand
        </Button>
        <Button type="submit" variant="primary" busy={parse.isPending} disabled={text.trim() === ""}>
          Continue
        </Button>
      </div>
    </form>
  );
}
