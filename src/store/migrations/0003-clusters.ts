import { columnsOf } from "./columns.ts";
import type { Migration } from "./migration.ts";

/** What only hubs on several machines need. */
export const clusters: Migration = {
  version: 3,
  name: "clusters",
  async up({ schema }, types) {
    const columns = columnsOf(types);
    await columns
      .add(schema.createTable("limit_spans"), "key span# used# given#")
      .addPrimaryKeyConstraint("limit_spans_key", ["key", "span"])
      .execute();
    await schema.createIndex("limit_spans_by_span").on("limit_spans").column("span").execute();
    await columns
      .add(schema.createTable("skill_files"), "digest content added_at")
      .addPrimaryKeyConstraint("skill_files_key", ["digest"])
      .execute();
  },
};
