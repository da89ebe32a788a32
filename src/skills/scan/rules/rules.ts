import { credentialTheft } from "./credential-theft.ts";
import { downloadAndRun } from "./download-and-run.ts";
import { encodedCommand } from "./encoded-command.ts";
import { encodedPayload } from "./encoded-payload.ts";
import { fakePrerequisite } from "./fake-prerequisite.ts";
import { lockedArchive } from "./locked-archive.ts";
import { obfuscatedCode } from "./obfuscated-code.ts";
import { persistence } from "./persistence.ts";
import { pipedDownload } from "./piped-download.ts";
import { rawAddress } from "./raw-address.ts";
import { reverseShell } from "./reverse-shell.ts";
import { remoteInstructions } from "./remote-instructions.ts";
import type { Rule } from "./rule.ts";
import { sabotage } from "./sabotage.ts";
import { weakenedSecurity } from "./weakened-security.ts";

/** What every text of a skill is asked. */
export const RULES: readonly Rule[] = [
  pipedDownload,
  downloadAndRun,
  encodedCommand,
  encodedPayload,
  rawAddress,
  lockedArchive,
  credentialTheft,
  fakePrerequisite,
  persistence,
  reverseShell,
  weakenedSecurity,
  obfuscatedCode,
  sabotage,
  remoteInstructions,
];
