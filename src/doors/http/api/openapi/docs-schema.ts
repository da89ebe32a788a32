/** A JSON Schema as a person reads it: a word for each type, a table for the members of an object. */
import { isJsonObject, type JsonObject } from "../../../../model/json.ts";
import { Markup, inline, markup } from "./markup.ts";

const DEEPEST = 4;

export function typeWords(schema: unknown): Markup {
  if (!isJsonObject(schema)) return markup`anything`;
  const named = nameIn(schema);
  if (named !== undefined) return markup`<a href="#schema-${named}">${named}</a>`;
  const { type, enum: values, const: only, anyOf, items } = schema;
  if (Array.isArray(values)) return joined(values.map((value) => markup`<code>${JSON.stringify(value)}</code>`));
  if (only !== undefined) return markup`<code>${JSON.stringify(only)}</code>`;
  if (Array.isArray(anyOf)) return joined(anyOf.map(typeWords));
  if (type === "array") return markup`list of ${typeWords(items)}`;
  if (Array.isArray(type)) return joined(type.map((each) => markup`${String(each)}`));
  if (type === "object" && isJsonObject(schema["additionalProperties"]) && schema["properties"] === undefined) {
    return markup`object of ${typeWords(schema["additionalProperties"])}`;
  }
  return typeof type === "string" ? markup`${type}` : markup`anything`;
}

function joined(parts: readonly Markup[]): Markup {
  return markup`${parts.map((part, index) => (index === 0 ? part : markup` or ${part}`))}`;
}

function nameIn({ $ref: reference }: JsonObject): string | undefined {
  return typeof reference === "string" ? reference.split("/").at(-1) : undefined;
}

interface Member {
  readonly name: string;
  readonly schema: unknown;
  readonly required: boolean;
}

export function memberTable(schema: unknown): Markup {
  const members = membersOf(schema, "", 0);
  if (members.length === 0) return markup`<p>${typeWords(schema)}</p>`;
  return table(members);
}

export function table(members: readonly Member[]): Markup {
  return markup`<table>
    <thead>
      <tr>
        <th scope="col">Name</th>
        <th scope="col">Type</th>
        <th scope="col">Meaning</th>
      </tr>
    </thead>
    <tbody>
      ${members.map(row)}
    </tbody>
  </table>`;
}

function row({ name, schema, required }: Member): Markup {
  const { description, default: standard } = isJsonObject(schema) ? schema : {};
  const about = typeof description === "string" ? inline(description) : undefined;
  const unless = standard === undefined ? undefined : markup` Default <code>${JSON.stringify(standard)}</code>.`;
  const optional = required ? undefined : markup` <span class="scope">optional</span>`;
  return markup`<tr>
    <td><code>${name}</code>${optional}</td>
    <td>${typeWords(schema)}</td>
    <td>${about}${unless}</td>
  </tr> `;
}

/** Objects within are shown in place, by dotted names. */
function membersOf(schema: unknown, prefix: string, depth: number): Member[] {
  if (!isJsonObject(schema) || !isJsonObject(schema["properties"]) || depth > DEEPEST) return [];
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(schema["properties"]).flatMap(([key, member]): Member[] => {
    const name = prefix + key;
    const inner = isJsonObject(member) && member["type"] === "array" ? member["items"] : member;
    const mark = inner === member ? "." : "[].";
    return [{ name, schema: member, required: required.includes(key) }, ...membersOf(inner, name + mark, depth + 1)];
  });
}
