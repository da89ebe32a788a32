import type { CreateTableBuilder } from "kysely";
import type { ColumnTypes } from "./migration.ts";

type Table = CreateTableBuilder<string, string>;

export interface Columns {
  /** `name?` may be null, `name#` is a whole number. */
  add(table: Table, names: string): Table;
}

export function columnsOf({ text, integer }: ColumnTypes): Columns {
  return {
    add: (table, names) =>
      names.split(" ").reduce((built, each) => {
        const type = each.includes("#") ? integer : text;
        // The builder takes an Expression that came from `sql`, which is what the engines give.
        const sqlType = type as Parameters<Table["addColumn"]>[1];
        const name = each.replace(/[?#]/g, "");
        return built.addColumn(name, sqlType, (column) => (each.includes("?") ? column : column.notNull()));
      }, table),
  };
}
