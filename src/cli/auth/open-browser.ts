import { spawn } from "node:child_process";

/** Asks the desktop to show an address that was checked to be https or on this machine. Whether it does, nobody knows. */
export function openBrowser(url: URL, env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): void {
  const [program, ...args] = openerOf(url.href, platform);
  // Without a shell, which would read an ampersand in the address as the end of it.
  const child = spawn(program, args, { env, stdio: "ignore", detached: true, windowsHide: true });
  // The address is printed in any case.
  child.on("error", () => {});
  child.unref();
}

export function openerOf(address: string, platform: NodeJS.Platform): [program: string, ...args: string[]] {
  if (platform === "darwin") return ["open", address];
  // `start` is a word of cmd.exe, whose quoting rules no address fits.
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler", address];
  return ["xdg-open", address];
}
