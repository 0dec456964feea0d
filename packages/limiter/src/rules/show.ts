const LONGEST = 60
// control characters, lone surrogates, and the marks that reorder or hide text on a terminal
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Escapes text for one line of a terminal. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, character => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`)
}

/** Cuts text to a readable length. */
export function cutText(text: string, length: number = LONGEST): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}

/** Hides the password of a URL in a text. */
function maskText(text: string): string {
  return text.replace(/:\/\/.*@/su, '://…@')
}

/** Returns a value as text for people. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `"${escapeText(cutText(maskText(value)))}"`
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  return typeof value === 'symbol' || typeof value === 'function' ? `a ${typeof value}` : cutText(String(value))
}

/** Joins names as `a, b or c`. */
export function joinNames(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}

/** Returns a path in a document as people write it: `rules[2].match.path`. */
export function showPath(path: readonly PropertyKey[]): string {
  return path
    .map(step => (typeof step === 'number' ? `[${step}]` : `.${escapeText(cutText(maskText(String(step))))}`))
    .join('')
    .replace(/^\./, '')
}
