/** Variables with which one program makes another load or run something of its own. */
import type { SkillSeverity } from "../../model/skill.ts";

/** Their only use is to run something else than what is started. */
const RUNS_OTHER =
  /^(?:LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|PYTHONSTARTUP|PERL5DB|PERL5OPT|RUBYOPT|GIT_(?:SSH|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND|ASKPASS|EDITOR|PAGER)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|PROMPT_COMMAND|NPM_CONFIG_(?:REGISTRY|.+_REGISTRY|SCRIPT_SHELL|NODE_OPTIONS|USERCONFIG|GLOBALCONFIG|GIT)|(?:UV|PIP)_(?:DEFAULT_INDEX|INDEX_URL|INDEX|EXTRA_INDEX_URL|CONFIG_FILE))$/;

/** They have honest uses too. */
const MAY_LOAD =
  /^(?:LD_.+|DYLD_.+|PATH|PATHEXT|COMSPEC|NODE_OPTIONS|NODE_PATH|NODE_REPL_EXTERNAL_MODULE|PYTHON(?:PATH|HOME|INSPECT|BREAKPOINT|USERBASE|EXECUTABLE)|PERL5LIB|PERLLIB|RUBYLIB|GEM_(?:HOME|PATH)|CLASSPATH|NPM_CONFIG_.+|GIT_(?:CONFIG.*|EXEC_PATH|TEMPLATE_DIR))$/;

const LOADS_MODULE =
  /(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader)(?:[\s=]|$)|--inspect|--eval|data:/;

/** Undefined for a variable that loads nothing. Names are compared as Windows does. */
export function loadsOther(name: string, value: string): SkillSeverity | undefined {
  const upper = name.toUpperCase().replaceAll("-", "_");
  // Many programs call their stage of deployment so; a shell takes it for a file.
  if (upper === "ENV") return /[/\\`$]/.test(value) ? "refuse" : undefined;
  if (upper === "NODE_OPTIONS" && LOADS_MODULE.test(value)) return "refuse";
  if (RUNS_OTHER.test(upper)) return "refuse";
  return MAY_LOAD.test(upper) ? "warn" : undefined;
}
