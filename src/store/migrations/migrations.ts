import { firstTables } from "./0001-first-tables.ts";
import { conversations } from "./0002-conversations.ts";
import { clusters } from "./0003-clusters.ts";
import { pinsOfAllKinds } from "./0004-pins-of-all-kinds.ts";
import type { Migration } from "./migration.ts";

/** In their order. A list and no folder listing, because the package is one bundle. */
export const MIGRATIONS: readonly Migration[] = [firstTables, conversations, clusters, pinsOfAllKinds];

export const CURRENT_VERSION = MIGRATIONS.length;
