import { describe, expect, it } from "vitest";
import { otherUsers, sharedMachineWarning } from "../../src/cli/serve/banner.ts";

const PASSWD = `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1::/:/usr/sbin/nologin
postgres:x:101:104::/var/lib/postgresql:/bin/bash
me:x:1000:1000:Me:/home/me:/bin/bash
nobody:x:65534:65534:nobody:/:/bin/sh
`;
const ANN = "ann:x:1001:1001::/home/ann:/usr/bin/zsh\n";
const BOT = "bot:x:1002:1002::/srv:/bin/false\n";

describe("[trust-14b] who else uses a machine", () => {
  it("is whoever can log in there, besides root and oneself", () => {
    expect(otherUsers({ uid: 1000, passwd: PASSWD, loggedIn: ["1000", "0"] })).toEqual([]);
    expect(otherUsers({ uid: 1000, passwd: PASSWD + ANN + BOT, loggedIn: [] })).toEqual(["ann"]);
    expect(otherUsers({ uid: 0, passwd: PASSWD, loggedIn: [] })).toEqual(["me"]);
  });

  it("is whoever is logged in, also a user that a directory service knows", () => {
    const facts = { uid: 1000, passwd: PASSWD + BOT, loggedIn: ["1000", "1002", "4000", "x"] };
    expect(otherUsers(facts)).toEqual(["bot", "user 4000"]);
  });

  it("cannot be told without user ids, or without the files", () => {
    expect(otherUsers({ uid: undefined, passwd: PASSWD + ANN, loggedIn: [] })).toEqual([]);
    expect(otherUsers({ uid: 1000, passwd: "", loggedIn: [] })).toEqual([]);
  });

  it("is named in the warning, a few of them by name", () => {
    expect(sharedMachineWarning({ uid: 1000, passwd: PASSWD, loggedIn: [] })).toBeUndefined();
    const passwd = PASSWD + [1, 2, 3, 4, 5].map((id) => `u${id}:x:200${id}:1::/:/bin/sh\n`).join("");
    expect(sharedMachineWarning({ uid: 1000, passwd, loggedIn: [] })).toContain("(u1, u2, u3 and 2 more)");
  });
});
