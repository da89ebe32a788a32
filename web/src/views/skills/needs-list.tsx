/** The requirements of a skill, each with whether it was found. */
import { Icon } from "../../components/icon.tsx";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import type { Need } from "./skill-words.ts";

export function NeedsList({ needs }: { readonly needs: readonly Need[] }) {
  return (
    <ul aria-label={t(skillWords.requirements)} className="flex flex-wrap gap-1.5">
      {needs.map(({ kind, name, found }) => (
        <li
          key={`${kind} ${name}`}
          className={`inline-flex max-w-full items-center gap-1 rounded-sm border px-1.5 text-xs leading-normal ${
            found ? "border-line bg-sunken text-soft" : "border-transparent bg-warn-wash text-warn"
          }`}
        >
          <Icon name={found ? "check" : "close"} className="size-3" />
          <span className="sr-only">{t(found ? skillWords.found : skillWords.missing)}: </span>
          <span>{kind}</span>
          <span className="min-w-0 font-mono break-all">{name}</span>
        </li>
      ))}
    </ul>
  );
}
