/** A text input with suggestions from elsewhere (the combobox pattern of ARIA). */
import { type KeyboardEvent, useEffect, useEffectEvent, useId, useState } from "react";
import { TextInput } from "./fields.tsx";

interface SuggestInputProps {
  readonly attributes: Omit<React.ComponentProps<typeof TextInput>, "value" | "onChange">;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** For screen readers. */
  readonly listLabel: string;
  /** Asked while the input is used; an empty list shows nothing. */
  readonly suggest: (value: string, signal: AbortSignal) => Promise<readonly string[]>;
}

const DELAY_MS = 150;

export function SuggestInput({ attributes, value, onChange, listLabel, suggest }: SuggestInputProps) {
  const id = useId();
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<readonly string[]>([]);
  const [chosen, setChosen] = useState(-1);
  const latest = useEffectEvent(suggest);
  useEffect(() => {
    if (!open) return undefined;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      // No suggestions are no reason to stop: anything can be typed.
      void latest(value, controller.signal)
        .catch(() => [])
        .then((values) => {
          if (controller.signal.aborted) return;
          setFound(values);
          setChosen(-1);
        });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [open, value]);
  const shown = open ? found.filter((each) => each !== value) : [];
  const take = (text: string): void => {
    onChange(text);
    setOpen(false);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && shown.length > 0) {
      event.stopPropagation();
      setOpen(false);
    } else if (event.key === "Enter" && shown[chosen] !== undefined) {
      event.preventDefault();
      take(shown[chosen]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (shown.length > 0) setChosen((chosen + step + shown.length) % shown.length);
    }
  };
  return (
    <div className="relative">
      <TextInput
        {...attributes}
        mono
        role="combobox"
        aria-expanded={shown.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={shown[chosen] === undefined ? undefined : `${id}-${chosen}`}
        autoComplete="off"
        value={value}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setOpen(true);
          onChange(event.target.value);
        }}
      />
      <ul
        id={`${id}-list`}
        role="listbox"
        aria-label={listLabel}
        className={`absolute z-20 mt-1 max-h-60 w-full overflow-y-auto rounded-md border border-line bg-panel py-1 shadow-float ${shown.length === 0 ? "hidden" : ""}`}
      >
        {shown.map((each, index) => (
          <li
            key={each}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            className={`cursor-pointer px-3 py-1 font-mono text-sm break-all hover:bg-hover ${index === chosen ? "bg-accent-wash" : ""}`}
            // Before the input loses the focus.
            onMouseDown={(event) => {
              event.preventDefault();
              take(each);
            }}
          >
            {each}
          </li>
        ))}
      </ul>
    </div>
  );
}
