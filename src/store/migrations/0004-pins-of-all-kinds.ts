import { type Kysely, sql } from "kysely";
import { columnsOf } from "./columns.ts";
import type { Migration } from "./migration.ts";

/** Prompts, resources, templates and instructions are pinned too. The key has another column, so the table is made again. */
export const pinsOfAllKinds: Migration = {
  version: 4,
  name: "pins of all kinds",
  async up(db: Kysely<unknown>, types) {
    const { schema } = db;
    await schema.alterTable("pins").renameTo("pins_of_tools").execute();
    await columnsOf(types)
      .add(schema.createTable("pins"), "scope server kind tool fingerprint definition pinned_at")
      .addPrimaryKeyConstraint("pins_by_kind_key", ["scope", "server", "kind", "tool"])
      .execute();
    await sql`insert into pins (scope, server, kind, tool, fingerprint, definition, pinned_at)
      select scope, server, 'tool', tool, fingerprint, definition, pinned_at from pins_of_tools`.execute(db);
    await schema.dropTable("pins_of_tools").execute();
  },
};
