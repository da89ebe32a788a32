/** Keys that work in every view, and the list of them. */
import { useNavigate } from "@tanstack/react-router";
import { Fragment, useEffect, useEffectEvent, useRef } from "react";
import { Dialog } from "../components/dialog.tsx";
import { isTyping } from "../components/roving.ts";
import { type Message, t } from "../messages/messages.ts";
import { palette } from "../messages/palette.ts";
import { PLACES } from "./places.ts";

const IS_MAC = /Mac|iP(?:hone|ad)/.test(navigator.platform);
export const PALETTE_KEYS = IS_MAC ? ["⌘", "K"] : ["Ctrl", "K"];
/** How long `g` waits for the key of a view. */
const SEQUENCE_MS = 1500;

interface ShortcutHandlers {
  readonly onPalette: () => void;
  readonly onHelp: () => void;
}

export function useShortcuts({ onPalette, onHelp }: ShortcutHandlers): void {
  const navigate = useNavigate();
  const goPressed = useRef(Number.NEGATIVE_INFINITY);
  const press = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing) return;
    const { key } = event;
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && key.toLowerCase() === "k") {
      event.preventDefault();
      return onPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("[role=dialog], [role=alertdialog]") !== null) return;
    const isAfterGo = performance.now() - goPressed.current < SEQUENCE_MS;
    goPressed.current = key === "g" && !isAfterGo ? performance.now() : Number.NEGATIVE_INFINITY;
    const place = isAfterGo ? PLACES.find((each) => each.key === key) : undefined;
    const search = key === "/" ? document.querySelector<HTMLElement>("#main input[type=search]") : null;
    if (place === undefined && search === null && key !== "?") return;
    event.preventDefault();
    if (place !== undefined) void navigate({ to: place.to });
    else if (search !== null) search.focus();
    else onHelp();
  });
  useEffect(() => {
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

type Row = readonly [label: Message, keys: readonly (readonly string[])[]];

const EVERYWHERE: readonly Row[] = [
  [palette.title, [PALETTE_KEYS]],
  [palette.findInView, [["/"]]],
  [palette.showShortcuts, [["?"]]],
];

const IN_LISTS: readonly Row[] = [
  [palette.nextLine, [["↓"], ["j"]]],
  [palette.previousLine, [["↑"], ["k"]]],
  [palette.firstLine, [["Home"], ["End"]]],
  [palette.openLine, [["Enter"]]],
  [palette.closeDetail, [["Esc"]]],
];

export function ShortcutsDialog({
  open,
  onOpenChange,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
}) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={t(palette.shortcuts)}>
      <div className="grid gap-x-8 gap-y-6 sm:grid-cols-2">
        <div className="flex flex-col gap-6">
          <Keys title={palette.everywhere} rows={EVERYWHERE} />
          <Keys title={palette.inLists} rows={IN_LISTS} />
        </div>
        <section>
          <h3 className="mb-1 font-semibold">{t(palette.goTo)}</h3>
          <dl>
            {PLACES.map(({ to, label, key }) => (
              <div key={to} className="flex min-h-8 items-center justify-between gap-3">
                <dt>{t(label)}</dt>
                <dd className="flex items-center gap-1.5 text-sm text-faint">
                  <Key text="g" /> {t(palette.andThen)} <Key text={key} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}

function Keys({ title, rows }: { readonly title: Message; readonly rows: readonly Row[] }) {
  return (
    <section>
      <h3 className="mb-1 font-semibold">{t(title)}</h3>
      <dl>
        {rows.map(([label, keys]) => (
          <div key={label.en} className="flex min-h-8 items-center justify-between gap-3">
            <dt>{t(label)}</dt>
            <dd className="flex items-center gap-1.5">
              {keys.map((combination, index) => (
                <Fragment key={index}>
                  {combination.map((key) => (
                    <Key key={key} text={key} />
                  ))}
                </Fragment>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Key({ text }: { readonly text: string }) {
  return (
    <kbd className="inline-flex min-w-5.5 items-center justify-center rounded-sm border border-line bg-sunken px-1.5 font-sans text-xs leading-normal text-soft">
      {text}
    </kbd>
  );
}
