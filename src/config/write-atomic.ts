export { realTarget, writeAtomic } from "../files/write-atomic.ts";
