import { describe, expect, it } from "vitest";
import { explainGitFailure, explainNpmFailure } from "../../../src/skills/fetch/fetch-skills.ts";

const npm = (...lines: string[]): string => lines.map((line) => `npm error ${line}\n`).join("");

describe("[skill-10c] what npm means", () => {
  it.each([
    [
      npm(
        "code E404",
        "404 Not Found - GET https://packages.example/none - Not found",
        "404",
        "404  The requested resource 'none@*' could not be found or you do not have permission to access it.",
        "404 Note that you can also install from a",
        "404 tarball, folder, http url, or git url.",
        "A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log",
      ),
      "not_found",
      "E404: Not Found - GET https://packages.example/none - Not found",
    ],
    [
      npm("code ETARGET", "notarget No matching version found for x@9.", "notarget In most cases you or one of …"),
      "not_found",
      "ETARGET: No matching version found for x@9.",
    ],
    [
      npm(
        "code ENOTFOUND",
        "syscall getaddrinfo",
        "errno ENOTFOUND",
        "network request to http://no.invalid/x failed, reason: getaddrinfo ENOTFOUND no.invalid",
        "network This is a problem related to network connectivity.",
        "Log files were not written due to the config logs-max=0",
      ),
      "server_unavailable",
      "ENOTFOUND: request to http://no.invalid/x failed, reason: getaddrinfo ENOTFOUND no.invalid",
    ],
    ["npm ERR! code E401\nnpm ERR! Unable to authenticate.\n", "unauthorized", "E401: Unable to authenticate."],
    [npm("code ENOSPC", "no space left"), "tool_error", "ENOSPC: no space left"],
    ["sh: something else\n", "tool_error", "sh: something else"],
    ["", "tool_error", ""],
  ])("%#", (stderr, code, reason) => {
    const complaint = explainNpmFailure(stderr);
    expect(complaint).toMatchObject({ code, reason });
    expect(complaint.hint).not.toBe("");
  });
});

describe("[skill-10b] what git means", () => {
  const ADVICE =
    "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n";

  it.each([
    [
      "warning: redirecting\nfatal: unable to access 'https://a.example/': Could not resolve host: a.example\n",
      "server_unavailable",
      "unable to access 'https://a.example/': Could not resolve host: a.example",
    ],
    [
      `ssh: connect to host a.example port 22: Connection refused\n${ADVICE}`,
      "server_unavailable",
      "ssh: connect to host a.example port 22: Connection refused",
    ],
    [
      `git@a.example: Permission denied (publickey).\n${ADVICE}`,
      "unauthorized",
      "git@a.example: Permission denied (publickey).",
    ],
    [`ERROR: Repository not found.\n${ADVICE}`, "not_found", "Repository not found."],
    [
      "remote: Nothing here.\nfatal: repository 'https://a.example/openssl.git/' not found\n",
      "not_found",
      "repository 'https://a.example/openssl.git/' not found",
    ],
    [
      "error: pack has bad object\nhint: try again\nfatal: fetch-pack: invalid output\n",
      "tool_error",
      "pack has bad object",
    ],
  ])("%#", (stderr, code, reason) => {
    expect(explainGitFailure(stderr)).toMatchObject({ code, reason });
  });
});
