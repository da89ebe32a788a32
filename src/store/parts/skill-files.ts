import type { Engine } from "../engine.ts";
import type { StoredSkillFiles } from "../store.ts";

export function storedSkillFiles({ db }: Engine, now: () => string): StoredSkillFiles {
  return {
    async put(digest, bytes) {
      const addedAt = now();
      await db
        .insertInto("skillFiles")
        .values({ digest, content: Buffer.from(bytes).toString("base64"), addedAt })
        // Whoever puts it is about to speak of it, so that it must not go as one that nobody speaks of.
        .onConflict((conflict) => conflict.column("digest").doUpdateSet({ addedAt }))
        .execute();
    },
    async get(digest) {
      const row = await db.selectFrom("skillFiles").select("content").where("digest", "=", digest).executeTakeFirst();
      return row && Buffer.from(row.content, "base64");
    },
    async prune(kept, before) {
      const rows = await db.selectFrom("skillFiles").select("digest").where("addedAt", "<", before).execute();
      for (const { digest } of rows) {
        if (!kept.has(digest)) await db.deleteFrom("skillFiles").where("digest", "=", digest).execute();
      }
    },
  };
}
