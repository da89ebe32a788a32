/** A process of its own that wants tokens: `node token-user.ts <dir> <url> <times>`. Prints the tokens that it got. */
import { systemClock } from "../../../src/model/clock.ts";
import { OAuth } from "../../../src/secrets/oauth/oauth.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";

const [dir = "", url = "", times = "1"] = process.argv.slice(2);
const oauth = new OAuth({ dir, clock: systemClock, redactor: new Redactor() });
const credentials = await oauth.credentialsFor({ server: "srv", url }, { type: "oauth" });
if (credentials === undefined) throw new Error("no credentials");
const got = await Promise.all(Array.from({ length: Number(times) }, () => credentials.headers()));
process.stdout.write(JSON.stringify([...new Set(got.map((headers) => headers["authorization"]))]));
