// The frame of every drawing in docs/images. A drawing has a background of its own and follows the color scheme of the reader
// (prefers-color-scheme), which works in an <img> and needs one file and no markup in the page. Where a page is dark and the
// system is light, or the other way around, it is still readable.

/** Each color on light and on dark paper; texts have a contrast of 4.5 to their paper or more, areas and lines of 3. */
const colors = {
  teal: ['#0b7a75', '#3fb8af'],
  orange: ['#b8651b', '#e39a5b'],
  purple: ['#6e5aa8', '#a895e0'],
  blue: ['#2f6fc4', '#6ca8f0'],
  green: ['#22854f', '#3fb970'],
  red: ['#c9413d', '#f0716c'],
  gray: ['#6e7781', '#8b949e'],
}
const paper = ['#ffffff', '#0d1117']
const text = ['#24292f', '#e6edf3']
const muted = ['#57606a', '#9da7b3']
const grid = ['#d0d7de', '#30363d']

/** The rules of one scheme: 0 is light, 1 is dark. */
function rulesOf(scheme, used) {
  return [
    `text { fill: ${text[scheme]} }`,
    `.muted { fill: ${muted[scheme]} }`,
    `.paper { fill: ${paper[scheme]} }`,
    `.grid { stroke: ${grid[scheme]} }`,
    ...used.map(name => `.${name} { fill: ${colors[name][scheme]} }`),
    ...used.map(name => `.${name}-line { stroke: ${colors[name][scheme]} }`),
  ]
}

export const escaped = value =>
  String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/**
 * A whole SVG file. In `parts`, a class is the name of a color for areas (`teal`), with `-line` for lines (`teal-line`), or one
 * of `title`, `muted`, `small` and `grid`.
 */
export function drawing({ width, height, title, fontSize = 13, parts }) {
  const content = parts.join('\n')
  const used = Object.keys(colors).filter(name => new RegExp(`class="(?:[^"]* )?${name}(?:-line)?[ "]`).test(content))
  const style = [
    `text { font: ${fontSize}px system-ui, -apple-system, 'Segoe UI', sans-serif }`,
    '.title { font-weight: 600 }',
    `.small { font-size: ${fontSize - 2}px }`,
    ...used.map(name => `.${name}-line { fill: none; stroke-width: 2 }`),
    ...rulesOf(0, used),
    '@media (prefers-color-scheme: dark) {',
    ...rulesOf(1, used).map(rule => `  ${rule}`),
    '}',
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${escaped(title)}</title>
<style>
${style.map(rule => `  ${rule}`).join('\n')}
</style>
<rect class="paper" width="${width}" height="${height}"/>
${content}
</svg>
`
}
