import { expect, it } from "vitest";
import { storeAddress } from "../../../src/hub/create/open-home.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";
import { Secrets } from "../../../src/secrets/secrets.ts";

it("[oper-01b] the password of the store's address is masked, and the address itself can be named", async () => {
  const redactor = new Redactor();
  const secrets = new Secrets({ env: {}, home: "/nowhere", redactor });
  const plain = "postgres://me@db.example.com:5432/toolcrib";
  expect(await storeAddress(plain, "/", secrets)).toBe(plain);
  expect(redactor.mask(`The database ${plain} cannot be reached.`)).toContain("db.example.com:5432/toolcrib cannot");
  await storeAddress("postgres://me:horse%21battery@db.example.com/toolcrib", "/", secrets);
  await storeAddress("postgres://db.example.com/toolcrib?password=correct-staple", "/", secrets);
  const masked = redactor.mask("horse%21battery, horse!battery, correct-staple");
  expect(masked).not.toMatch(/horse|staple/);
});
