export { withLock } from "../files/lock-file.ts";
