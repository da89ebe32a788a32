import { columnsOf } from "./columns.ts";
import type { Migration } from "./migration.ts";

export const conversations: Migration = {
  version: 2,
  name: "conversations",
  async up({ schema }, types) {
    const columns = columnsOf(types);
    await columns
      .add(schema.createTable("conversations"), "id title? door cwd? user? created_at updated_at facts")
      .addPrimaryKeyConstraint("conversations_key", ["id"])
      .execute();
    await schema.createIndex("conversations_by_time").on("conversations").columns(["updated_at", "id"]).execute();
    await columns
      .add(schema.createTable("conversation_messages"), "conversation seq# message")
      .addPrimaryKeyConstraint("conversation_messages_key", ["conversation", "seq"])
      .execute();
  },
};
