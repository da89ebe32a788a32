/** Inputs with their labels, hints and errors joined to them. */
import { Switch as RadixSwitch } from "radix-ui";
import { type ComponentProps, type ReactNode, useEffect, useId, useState } from "react";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { Icon } from "./icon.tsx";

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly required?: boolean;
  /** The label is there for screen readers only. */
  readonly quiet?: boolean;
  readonly className?: string;
  /** Gets what joins the input to its texts: spread it over the input. */
  readonly children: (attributes: {
    readonly id: string;
    readonly "aria-describedby": string | undefined;
    readonly "aria-invalid": true | undefined;
    readonly "aria-required": true | undefined;
  }) => ReactNode;
}

export function Field({ label, hint, error, required = false, quiet = false, className = "", children }: FieldProps) {
  const id = useId();
  const described = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`]
    .filter(Boolean)
    .join(" ");
  return (
    <div className={`flex min-w-0 flex-col gap-1 ${className}`}>
      <div className={quiet ? "sr-only" : "font-medium"}>
        <label htmlFor={id}>{label}</label>
        {required && (
          <span className="text-bad" title={t(components.required)} aria-hidden="true">
            {" *"}
          </span>
        )}
      </div>
      {children({
        id,
        "aria-describedby": described === "" ? undefined : described,
        "aria-invalid": error === undefined ? undefined : true,
        "aria-required": required ? true : undefined,
      })}
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-sm text-soft">
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p id={`${id}-error`} className="text-sm text-bad">
          {error}
        </p>
      )}
    </div>
  );
}

export function TextInput({
  className = "",
  mono = false,
  ...rest
}: ComponentProps<"input"> & { readonly mono?: boolean }) {
  return (
    <input
      type="text"
      autoComplete="off"
      spellCheck={false}
      {...rest}
      className={`input ${mono ? "font-mono text-sm" : ""} ${className}`}
    />
  );
}

export function TextArea({
  className = "",
  mono = false,
  ...rest
}: ComponentProps<"textarea"> & { readonly mono?: boolean }) {
  return (
    <textarea
      rows={4}
      spellCheck={false}
      {...rest}
      className={`input resize-y ${mono ? "font-mono text-sm" : ""} ${className}`}
    />
  );
}

interface SelectProps extends Omit<ComponentProps<"select">, "onChange" | "value"> {
  readonly value: string;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly onChange: (value: string) => void;
}

/** The browser's own list: it works by keyboard, on a phone, and without styles of its own. */
export function Select({ options, onChange, className = "", ...rest }: SelectProps) {
  return (
    <select
      {...rest}
      className={`input w-auto max-w-56 @max-lg:grow ${className}`}
      onChange={(event) => onChange(event.target.value)}
    >
      {options.map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}

export function Checkbox({
  label,
  className = "",
  ...rest
}: Omit<ComponentProps<"input">, "type"> & { readonly label: ReactNode }) {
  return (
    <label className={`inline-flex items-center gap-2 ${className}`}>
      <input type="checkbox" {...rest} className="size-4 accent-accent" />
      <span>{label}</span>
    </label>
  );
}

export function Radio({ label, ...rest }: Omit<ComponentProps<"input">, "type"> & { readonly label: ReactNode }) {
  return (
    <label className="inline-flex items-center gap-2">
      <input type="radio" {...rest} className="size-4 shrink-0 accent-accent" />
      <span>{label}</span>
    </label>
  );
}

interface SwitchProps {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
  readonly quiet?: boolean;
}

export function Switch({ label, checked, onChange, disabled = false, quiet = false }: SwitchProps) {
  const id = useId();
  return (
    <span className="inline-flex items-center gap-2">
      <RadixSwitch.Root
        id={id}
        checked={checked}
        disabled={disabled}
        onCheckedChange={onChange}
        className="relative h-5 w-9 shrink-0 rounded-full border border-line-strong bg-sunken transition-colors disabled:opacity-55 data-[state=checked]:border-accent data-[state=checked]:bg-accent"
      >
        <RadixSwitch.Thumb className="block size-3.5 translate-x-0.5 rounded-full bg-line-strong transition-transform data-[state=checked]:translate-x-[1.15rem] data-[state=checked]:bg-accent-ink" />
      </RadixSwitch.Root>
      <label htmlFor={id} className={quiet ? "sr-only" : ""}>
        {label}
      </label>
    </span>
  );
}

interface SearchBoxProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  readonly className?: string;
}

/** Tells its text when the typing pauses. */
export function SearchBox({
  label,
  value,
  onChange,
  placeholder,
  // In a narrow column it has a line of its own.
  className = "basis-full @lg:max-w-80 @lg:min-w-44 @lg:flex-1 @lg:basis-0",
}: SearchBoxProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => onChange(text), 200);
    return () => clearTimeout(timer);
    // Only typing starts the wait.
  }, [text]);
  return (
    <div className={`relative ${className}`}>
      <Icon name="search" className="pointer-events-none absolute top-2.5 left-2.5 size-4 text-faint" />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder ?? label}
        value={text}
        spellCheck={false}
        autoComplete="off"
        className="input pl-8!"
        onChange={(event) => setText(event.target.value)}
      />
    </div>
  );
}
