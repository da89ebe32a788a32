/** Files that a skill does not need, recognised by their first bytes, names and modes. */
import type { SkillFile, SkillFinding } from "../../../model/skill.ts";
import { MAX_EXCERPT_LENGTH } from "../rule.ts";

interface Format {
  readonly name: string;
  readonly bytes: readonly number[];
  /** The offset of the bytes. */
  readonly at?: number;
}

const PROGRAMS: readonly Format[] = [
  { name: "a Linux program (ELF)", bytes: [0x7f, 0x45, 0x4c, 0x46] },
  { name: "a Windows program (PE)", bytes: [0x4d, 0x5a] },
  { name: "a macOS program (Mach-O)", bytes: [0xcf, 0xfa, 0xed, 0xfe] },
  { name: "a macOS program (Mach-O)", bytes: [0xce, 0xfa, 0xed, 0xfe] },
  { name: "a macOS program (Mach-O)", bytes: [0xfe, 0xed, 0xfa, 0xcf] },
  { name: "a macOS program or a Java class", bytes: [0xca, 0xfe, 0xba, 0xbe] },
  { name: "a macOS installer", bytes: [0x78, 0x61, 0x72, 0x21] },
  { name: "a Windows installer", bytes: [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1] },
  { name: "a Windows shortcut", bytes: [0x4c, 0x00, 0x00, 0x00, 0x01, 0x14, 0x02, 0x00] },
];
const ZIP = [0x50, 0x4b, 0x03, 0x04];
const ARCHIVES: readonly Format[] = [
  { name: "zip", bytes: ZIP },
  { name: "rar", bytes: [0x52, 0x61, 0x72, 0x21] },
  { name: "7z", bytes: [0x37, 0x7a, 0xbc, 0xaf] },
  { name: "gzip", bytes: [0x1f, 0x8b] },
  { name: "xz", bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a] },
];

const PROGRAM_NAME =
  /\.(?:exe|dll|dmg|pkg|msi|scr|com|cpl|lnk|hta|vbs|vbe|jse|wsf|app|deb|rpm|apk|appimage|jar|so|dylib|node|elf|bin|run)$/i;
const INSTALLER_NAME = /\.(?:exe|dmg|pkg|msi|scr|cpl|lnk|hta|vbs|vbe|jse|wsf)$/i;
const DOUBLE =
  /\.(?:pdf|docx?|xlsx?|txt|png|jpe?g|md|csv|html?)\.(?:exe|scr|com|bat|cmd|vbs|js|lnk|hta|sh|command|ps1|app|msi)$/i;
const HARMLESS_NAME =
  /\.(?:md|txt|png|jpe?g|gif|svg|webp|ico|pdf|csv|json|ya?ml|html?|css|ttf|woff2?|otf|mp[34]|wav|xml|toml|log|dat)$/i;
const OFFICE =
  /\.(?:docx|xlsx|pptx|docm|xlsm|pptm|odt|ods|odp|epub|jar|apk|whl|vsix|crx|dotx|potx|xltx|msi|doc|xls|ppt|skill)$/i;
/** Places where programs are expected. */
const PROGRAM_PLACE = /(?:^|\/)(?:scripts?|bin|tools?|hooks?|examples?|tests?|src|lib|cli|commands?|dist|build)\//i;
const SCRIPT_NAME = /\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|ps1|bat|cmd|command|fish|lua|php|r|go|rs)$/i;
/** Dot files that every project has. */
const USUAL_DOT =
  /^\.(?:git(?:ignore|attributes|keep|modules)|env\.(?:example|sample|template)|editorconfig|prettier\S*|eslint\S*|npmignore|npmrc|nvmrc|node-version|python-version|tool-versions|dockerignore|markdownlint\S*|clawhub\S*|claude\S*|mcp\.json|github|vscode|pre-commit\S*|flake8|pylintrc|ruff\.toml|babelrc|browserslistrc|shellcheckrc|yamllint\S*|DS_Store|keep|env|envrc|gitlab-ci\.yml|travis\.yml|nojekyll|clang-format|coveragerc|openclaw\S*|skillignore|well-known|cursor\S*|agents?|codex\S*|gemini\S*|mise\.toml|oxlintrc\.json|swiftlint\.yml|rubocop\.yml)$/i;

export const HEAD_BYTES = 64;

function starts(head: Uint8Array, { bytes, at = 0 }: Format): boolean {
  return head.length >= at + bytes.length && bytes.every((byte, index) => head[at + index] === byte);
}

/** Findings about the kind of a file. */
export function fileFindings(
  file: SkillFile,
  head: Uint8Array,
  isText: boolean,
  allExecutable: boolean,
): SkillFinding[] {
  const found: SkillFinding[] = [];
  const { path } = file;
  const name = path.split("/").at(-1) ?? path;
  const add = (severity: SkillFinding["severity"], message: string, code = "unexpected_executable"): void => {
    found.push({ code, severity, message, file: path, line: 1, excerpt: name.slice(0, MAX_EXCERPT_LENGTH) });
  };
  const program =
    isText || (OFFICE.test(name) && !INSTALLER_NAME.test(name))
      ? undefined
      : PROGRAMS.find((format) => starts(head, format));
  const hidden = path.split("/").some((part) => part.startsWith(".") && !USUAL_DOT.test(part));
  if (DOUBLE.test(name)) add("refuse", "The name suggests a document, but the file is a program.");
  else if (program !== undefined && HARMLESS_NAME.test(name))
    add("refuse", `The file is ${program.name}, despite its name.`);
  else if (program !== undefined && hidden) add("refuse", `The file is ${program.name} in a hidden folder or file.`);
  else if (program !== undefined) add("warn", `The file is ${program.name}, so what it does cannot be read.`);
  else if (PROGRAM_NAME.test(name) && !isText && file.size > 0)
    add(INSTALLER_NAME.test(name) ? "warn" : "note", "The file is a program, so what it does cannot be read.");
  else if (isText && INSTALLER_NAME.test(name) && file.size > 0) add("warn", "The file is a program by its name.");
  else if (/\.pyc$/i.test(name)) add("note", "The file is compiled Python, so what it does cannot be read.");
  if (program === undefined && !isText && !OFFICE.test(name)) {
    const archive = ARCHIVES.find((format) => starts(head, format));
    // The lowest bit of the flags of a zip's first entry says that it is encrypted.
    const locked = archive?.name === "zip" && ((head[6] ?? 0) & 1) === 1;
    if (locked) add("refuse", "The archive has a password, which keeps scanners out.", "locked_archive");
    else if (archive !== undefined && !/\.(?:woff2?|svgz)$/i.test(name))
      add("note", `The contents of this ${archive.name} archive were not scanned.`, "unscanned");
  }
  const isCode = isText && (SCRIPT_NAME.test(name) || (head[0] === 0x23 && head[1] === 0x21));
  if (hidden && isCode) add("warn", "A program is in a hidden file.", "hidden_code");
  if (file.executable && !allExecutable && isText && !isCode && !PROGRAM_PLACE.test(path))
    add("note", "The file is executable, although neither its name nor its folder suggests a program.");
  return found;
}
