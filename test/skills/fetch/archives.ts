/** Archives byte by byte, so that they can say what no honest program would write. */
import { crc32, deflateRawSync, gzipSync } from "node:zlib";

export interface ZipMember {
  readonly name: string;
  readonly content?: string | Buffer;
  /** Unix mode with type bits; a plain file of 0644 if absent. */
  readonly mode?: number;
  /** What the headers claim, instead of the truth. */
  readonly claimedSize?: number;
  readonly encrypted?: boolean;
  readonly stored?: boolean;
}

export function zipOf(members: readonly ZipMember[]): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let offset = 0;
  for (const { name, content = "", mode = 0o100644, claimedSize, encrypted = false, stored = false } of members) {
    const raw = Buffer.from(content);
    const packed = stored ? raw : deflateRawSync(raw);
    const fileName = Buffer.from(name, "utf8");
    // Version, flags (names are UTF-8), method, time, date, crc, sizes, length of the name, no extra field.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x800 | (encrypted ? 1 : 0), 2);
    common.writeUInt16LE(stored ? 0 : 8, 4);
    common.writeUInt32LE(crc32(raw), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(claimedSize ?? raw.length, 18);
    common.writeUInt16LE(fileName.length, 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004", "latin1"), common, fileName, packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE((mode << 16) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    const madeBy = Buffer.from([30, 3]);
    centrals.push(Buffer.concat([Buffer.from("PK\u0001\u0002", "latin1"), madeBy, common, rest, fileName]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(members.length, 4);
  end.writeUInt16LE(members.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, Buffer.from("PK\u0005\u0006", "latin1"), end]);
}

export interface TarMember {
  readonly name: string;
  readonly content?: string | Buffer;
  readonly mode?: number;
  /** "0" file, "1" hard link, "2" symbolic link, "3" device, "5" folder. */
  readonly type?: string;
  readonly link?: string;
}

export function tarOf(members: readonly TarMember[]): Buffer {
  const blocks = members.flatMap(({ name, content = "", mode = 0o644, type = "0", link = "" }) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(name, 0, 100, "utf8");
    header.write(`${mode.toString(8).padStart(7, "0")}\0`, 100);
    header.write("0000000\0", 108);
    header.write("0000000\0", 116);
    header.write(`${body.length.toString(8).padStart(11, "0")}\0`, 124);
    header.write("00000000000\0", 136);
    header.write("        ", 148);
    header.write(type, 156);
    header.write(link, 157, 100, "utf8");
    header.write("ustar\u000000", 257, "latin1");
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

export const tgzOf = (members: readonly TarMember[]): Buffer => gzipSync(tarOf(members));

export const SKILL_TEXT = "---\nname: notes\ndescription: Takes notes.\n---\n\n# Notes\n";
