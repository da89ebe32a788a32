export { canonicalJson } from "../model/canonical-json.ts";
