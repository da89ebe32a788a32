/** Files such as people write them, in the shares in which the kinds of frontmatter occur. */

const TOPICS = ["tides", "invoices", "weather", "release notes", "bird songs", "train times", "recipes", "log files"];

const METADATA: readonly ((topic: string, index: number) => string)[] = [
  () => "",
  () => "license: MIT\n",
  (_, index) => `metadata:\n  author: office-${index}\n  version: "1.${index}"\n`,
  (topic) =>
    `homepage: https://skills.example/${topic}\nmetadata: {"openclaw": {"emoji": "🌊", "requires": {"bins": ["jq", "curl"], "env": ["API_TOKEN"]}, "install": [{"kind": "brew", "formula": "jq", "bins": ["jq"]}]}}\n`,
  () => 'allowed-tools:\n  - Read\n  - Bash(git log:*)\nargument-hint: "[day]"\n',
  () =>
    'metadata:\n  openclaw:\n    emoji: "🌊"\n    os: [darwin, linux]\n    requires:\n      bins: [jq]\n      # for the service\n      env: [API_TOKEN]\nversion: 1.10\n',
];

export function syntheticSkill(index: number): Uint8Array {
  const topic = (TOPICS[index % TOPICS.length] ?? "tides").replaceAll(" ", "-");
  const sentence = `Looks up ${topic} for a place and a day, compares them with the day before and says what changed.`;
  const description =
    index % 5 === 0
      ? `description: >\n  ${sentence}\n  Use it for questions about ${topic}.`
      : `description: ${sentence}`;
  const more = METADATA[index % METADATA.length]?.(topic, index) ?? "";
  const steps = Array.from(
    { length: 60 },
    (_, step) =>
      `${step + 1}. Take the ${topic} of hour ${step}, write them down with their unit, and go on if they are complete.\n`,
  );
  return new TextEncoder().encode(
    `---\nname: ${topic}-${index}\n${description}\n${more}---\n\n# ${topic}\n\n${steps.join("")}`,
  );
}
