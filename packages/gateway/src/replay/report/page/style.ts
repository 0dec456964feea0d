/** The look of the page: light and dark, from a phone to a wide screen. */
export const style = `
:root { color-scheme: light dark; --ground: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de; --calls: #a9c6e8; --most: #e8a33d; --least: #b3261e; --limit: #1b1f24; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161b; --text: #e6edf3; --quiet: #9aa6b2; --line: #38424d; --calls: #35577d; --most: #d98e25; --least: #ff8a80; --limit: #e6edf3; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; background: var(--ground); color: var(--text); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; } h3 { font-size: 1rem; margin-bottom: 0.25rem; }
p.quiet, li, caption { color: var(--quiet); } caption { text-align: left; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.3rem 0.75rem 0.3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
.plot { display: block; width: 100%; height: auto; } .plot-text { fill: var(--quiet); font-size: 11px; } .plot-axis { fill: none; stroke: var(--line); }
.plot-calls { fill: var(--calls); } .plot-most { fill: var(--most); } .plot-least { fill: var(--least); } .plot-limit { stroke: var(--limit); stroke-dasharray: 4 3; }
.plot-line-calls { fill: none; stroke: var(--least); stroke-width: 2; } .plot-line-callers { fill: none; stroke: var(--most); stroke-width: 2; } .plot-dot { fill: var(--least); }
.legend span { display: inline-block; margin-right: 1rem; color: var(--quiet); } .legend i { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.35em; }
.key-calls { background: var(--calls); } .key-most { background: var(--most); } .key-least { background: var(--least); }
summary { cursor: pointer; padding: 0.35rem 0; overflow-wrap: anywhere; }
`
