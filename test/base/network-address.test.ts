import type { NetworkInterfaceInfo } from "node:os";
import { describe, expect, it } from "vitest";
import { addressKind, isThisMachine, unwrapMappedAddress } from "../../src/base/network-address.ts";

const KINDS = {
  public: `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255
    169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255
    2606:4700:4700::1111 2a00:1450::1 2001:4860:4860::8888 ::ffff:1.1.1.1 64:ff9b::808:808 2002:808:808::1`,
  loopback: "127.0.0.1 127.0.0.0 127.255.255.255 ::1 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 ::ffff:7f00:1 64:ff9b::7f00:1",
  private: `10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0 100.127.255.255
    fc00:: fd12:3456::1 fdff:ffff::1 fec0::1 ::ffff:10.0.0.1 ::ffff:a00:1 ::ffff:0:10.1.2.3 64:ff9b::10.0.0.1
    2002:a00:1:: 2002:c0a8:101::1`,
  "link-local": "169.254.0.0 169.254.255.255 169.254.169.253 fe80::1 fe80::1%eth0 febf::1 ::ffff:169.254.1.1",
  metadata: `169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 fd00:ec2::254 ::ffff:169.254.169.254
    ::ffff:a9fe:a9fe 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::`,
  reserved: `0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 192.0.0.1 192.0.2.1 198.18.0.1
    198.19.255.255 198.51.100.1 203.0.113.9 :: ::2 ::7f00:1 ff02::1 ff0e::1 2001::1 2001:db8::1 64:ff9b:1::1 100::1
    4000::1 localhost 10.0.0 256.1.1.1 1.1.1.1/8 [::1]`,
} as const;

describe("[agent-01e] addressKind", () => {
  for (const [kind, addresses] of Object.entries(KINDS)) {
    it.each(addresses.split(/\s+/))(`${kind}: %s`, (address) => expect(addressKind(address)).toBe(kind));
  }

  it("unwraps an IPv4 address only where the form stands for nothing else", () => {
    expect(["::ffff:10.0.0.1", "10.0.0.1", "fe80::1%eth0", "64:ff9b::a00:1"].map(unwrapMappedAddress)).toEqual([
      "10.0.0.1",
      "10.0.0.1",
      "fe80::1",
      "64:ff9b::a00:1",
    ]);
  });
});

describe("[trust-04a] this machine", () => {
  const address = (text: string): NetworkInterfaceInfo =>
    ({ address: text, family: text.includes(":") ? "IPv6" : "IPv4", internal: false }) as NetworkInterfaceInfo;
  const interfaces = { eth0: [address("10.4.5.6"), address("203.0.114.9"), address("2a00:1450::5")], none: undefined };

  it("is reached at loopback, at every address of its interfaces and at the unspecified ones, in all spellings", () => {
    for (const text of `127.0.0.1 127.8.8.8 ::1 ::ffff:127.0.0.1 0.0.0.0 :: 0:0:0:0:0:0:0:0 ::ffff:0.0.0.0 10.4.5.6
      ::ffff:10.4.5.6 ::ffff:a04:506 203.0.114.9 2a00:1450::5 2a00:1450:0:0:0:0:0:5 2A00:1450::0005`.split(/\s+/)) {
      expect(isThisMachine(text, interfaces), text).toBe(true);
    }
    for (const text of ["10.4.5.7", "203.0.114.10", "2a00:1450::6", "1.1.1.1", "name.test"]) {
      expect(isThisMachine(text, interfaces), text).toBe(false);
    }
  });
});
