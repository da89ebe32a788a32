/** Who else uses this machine: without `http.auth` they reach a hub on loopback just as its own user does. */
import { readdirSync, readFileSync } from "node:fs";

/** The facts that it is told by. */
export interface MachineFacts {
  /** Of this process; undefined where there is no such thing. */
  readonly uid: number | undefined;
  /** The text of `/etc/passwd`. */
  readonly passwd: string;
  /** The names in `/run/user`: user ids of whoever is logged in, also of users that a directory service knows. */
  readonly loggedIn: readonly string[];
}

/** Below are accounts of services, above is `nobody`. */
const FIRST_UID = 1000;
const LAST_UID = 60_000;
const NO_SHELL = /(?:^|\/)(?:nologin|false|sync|halt|shutdown)$/;
const MOST_NAMED = 3;

/** People who can log in here, besides root and the user of this process. */
export function otherUsers({ uid, passwd, loggedIn }: MachineFacts): string[] {
  if (uid === undefined) return [];
  const isOther = (id: number): boolean => id >= FIRST_UID && id <= LAST_UID && id !== uid;
  const accounts = passwd.split("\n").map((line) => line.split(":"));
  const named = new Map(accounts.map(([name = "", , id = ""]) => [Number(id), name]));
  const people = accounts.flatMap(([name = "", , id = "", , , , shell = ""]) =>
    isOther(Number(id)) && !NO_SHELL.test(shell) ? [name] : [],
  );
  const present = loggedIn.flatMap((id) => (isOther(Number(id)) ? [named.get(Number(id)) ?? `user ${id}`] : []));
  return [...new Set([...people, ...present])];
}

export function machineFacts(): MachineFacts {
  return {
    uid: process.getuid?.(),
    passwd: orNone(() => readFileSync("/etc/passwd", "utf8")) ?? "",
    loggedIn: orNone(() => readdirSync("/run/user")) ?? [],
  };
}

/** For a hub without `http.auth`; undefined where nobody else is there. */
export function sharedMachineWarning(facts: MachineFacts): string | undefined {
  const users = otherUsers(facts);
  if (users.length === 0) return undefined;
  const more = users.length > MOST_NAMED ? ` and ${users.length - MOST_NAMED} more` : "";
  const named = `${users.slice(0, MOST_NAMED).join(", ")}${more}`;
  return (
    `Other users of this machine (${named}) can use this hub, because it asks for no token. ` +
    'This line in the config closes it: "http": { "auth": { "tokens": [{ "token": "secret://env/TOOLCRIB_TOKEN" }] } }'
  );
}

function orNone<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
