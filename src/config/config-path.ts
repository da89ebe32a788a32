/** Where a value stands inside a document. */
export type ConfigPath = readonly (string | number)[];

/** `mcpServers.files.args[0]`; a key that is no plain word is quoted: `mcpServers["my server"]`. */
export function formatPath(path: ConfigPath): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}
