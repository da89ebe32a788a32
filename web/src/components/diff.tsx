/** Lines that begin with `-`, `+` or a space. */
export function DiffLines({ lines, label }: { readonly lines: readonly string[]; readonly label: string }) {
  return (
    <pre
      tabIndex={0}
      role="group"
      aria-label={label}
      className="max-h-[40dvh] overflow-auto rounded-md border border-line bg-sunken py-2 font-mono text-sm"
    >
      {lines.map((line, index) => (
        <div
          key={index}
          className={`px-3 break-words whitespace-pre-wrap ${line.startsWith("+") ? "bg-ok-wash text-ok" : line.startsWith("-") ? "bg-bad-wash text-bad" : ""}`}
        >
          {line}
        </div>
      ))}
    </pre>
  );
}
