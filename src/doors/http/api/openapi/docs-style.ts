export const DOCS_STYLE = `
:root {
  color-scheme: light dark;
  --text: light-dark(#1c2126, #e3e7ea);
  --soft: light-dark(#5a6570, #9aa5ae);
  --page: light-dark(#ffffff, #14181b);
  --raised: light-dark(#f4f6f7, #1d2327);
  --line: light-dark(#dde2e6, #2e363c);
  --accent: light-dark(#0b62c4, #6fb1ff);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.55 system-ui, sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
.frame { display: grid; grid-template-columns: 17rem minmax(0, 1fr); max-width: 76rem; margin: 0 auto; }
nav { position: sticky; top: 0; align-self: start; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem; }
nav h2 { margin: 1.2rem 0 .3rem; font-size: .78rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li { padding: .1rem 0; overflow-wrap: anywhere; }
main { padding: 1.5rem 2rem 6rem; min-width: 0; }
h1 { margin: 0 0 .5rem; font-size: 1.7rem; }
h2.tag { margin: 3rem 0 0; padding-bottom: .4rem; border-bottom: 1px solid var(--line); }
section { padding: 1.5rem 0; border-bottom: 1px solid var(--line); scroll-margin-top: 1rem; }
section h3 { display: flex; flex-wrap: wrap; gap: .6rem; align-items: baseline; margin: 0 0 .4rem; font-size: 1rem; }
h4 { margin: 1.2rem 0 .4rem; font-size: .85rem; color: var(--soft); }
.method { min-width: 4.2rem; font: 600 12px/1.9 ui-monospace, monospace; text-align: center; border-radius: .3rem; border: 1px solid currentColor; }
.get { color: light-dark(#0b62c4, #6fb1ff); }
.post { color: light-dark(#1a7338, #6fd58f); }
.patch { color: light-dark(#8a5a00, #f0b95b); }
.delete { color: light-dark(#b3261e, #ff8f86); }
.scope { font-size: .8rem; color: var(--soft); }
pre { overflow-x: auto; margin: .4rem 0; padding: .8rem 1rem; background: var(--raised); border-radius: .4rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .35rem .6rem .35rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-size: .8rem; color: var(--soft); font-weight: 500; }
details > summary { cursor: pointer; color: var(--soft); font-size: .85rem; padding: .3rem 0; }
@media (max-width: 50rem) {
  .frame { display: block; }
  nav { position: static; height: auto; }
  main { padding: 1rem; }
}
`;
