/** A server of the config file: edited, enabled and removed as a diff that is shown first. */
import { useState } from "react";
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";
import { Button } from "../../components/button.tsx";
import { Switch } from "../../components/fields.tsx";
import { type ConfigChange, ReviewChange } from "../../components/review-change.tsx";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { serverWords } from "../../messages/server-words.ts";
import { configOf, draftOf, maskProblem, updatesOf } from "./draft.ts";
import { ServerDialog } from "./server-dialog.tsx";
import { fileName } from "./server-words.ts";

interface FileServerProps {
  readonly server: ServerDetail;
  readonly onRemoved: () => void;
}

export function FileServerActions({ server, onRemoved }: FileServerProps) {
  const [isEditing, setIsEditing] = useState(false);
  const [change, setChange] = useState<ConfigChange>();
  const [hidden, setHidden] = useState<string>();
  const serverId = server.id;
  const isRemoval = change?.kind === "server" && change.updates === null;
  return (
    <>
      <Button size="sm" icon="edit" onClick={() => setIsEditing(true)}>
        {t(rules.edit)}
      </Button>
      <Button
        size="sm"
        variant="danger"
        icon="trash"
        onClick={() => setChange({ kind: "server", serverId, updates: null })}
      >
        {t(rules.remove)}
      </Button>
      <Switch
        label={t(rules.enabled)}
        checked={server.enabled}
        onChange={(enabled) => setChange({ kind: "server", serverId, updates: { enabled } })}
      />
      <span className="text-sm text-soft" title={server.origin.file}>
        {t(rules.inPlace, { where: fileName(server.origin.file) })}
      </span>
      {isEditing && change === undefined && (
        <ServerDialog
          title={t(serverWords.edit, { server: server.name })}
          start={draftOf(server.id, server.config)}
          fixedId
          warnings={[]}
          saving={false}
          error={hidden === undefined ? null : { code: "invalid_arguments", message: hidden }}
          saveLabel={t(rules.continue)}
          onClose={() => setIsEditing(false)}
          onSave={(next) => {
            const problem = maskProblem(server.config, configOf(next));
            setHidden(problem);
            if (problem !== undefined) return;
            const updates = updatesOf(server.config, configOf(next));
            if (Object.keys(updates).length === 0) setIsEditing(false);
            else setChange({ kind: "server", serverId, updates });
          }}
        />
      )}
      {change !== undefined && (
        <ReviewChange
          title={t(rules.review)}
          changes={[change]}
          onClose={() => {
            setChange(undefined);
            setIsEditing(false);
          }}
          {...(isRemoval ? { onWritten: onRemoved } : {})}
        />
      )}
    </>
  );
}
