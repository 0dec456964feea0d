/** Escapes of letters; not of what would mean something else in a path or in the pattern of a rule: `% / \\ ? # ; *`. */
const ESCAPES = /(?:%[89a-f][\da-f])+|%(?!2[35af]|3[bf]|5c|7f)[2-7][\da-f]/gi
const IN_LOWER_CASE = /%(?:[\dA-F][a-f]|[a-f][\da-fA-F])/g
const BYTES = /[\x80-\xff]/
const BEYOND_BYTES = /[\u0100-\uffff]/

/**
 * A path with escapes read as the letters that they are: `/caf%C3%A9` is `/café`, and `/big%20sale` is `/big sale`. Some routers
 * compare paths after they have decoded them and some before, so rules and calls are compared in this one form.
 */
export function lettersOf(path: string): string {
  if (!path.includes('%')) return path
  return path.replace(ESCAPES, readEscapes).replace(IN_LOWER_CASE, escaped => escaped.toUpperCase())
}

/** The letters of a path that came as bytes of UTF-8, which Node gives as one character each; undefined if it did not. */
export function lettersOfBytes(path: string): string | undefined {
  if (!BYTES.test(path) || BEYOND_BYTES.test(path)) return undefined
  const letters = Buffer.from(path, 'latin1').toString('utf8')
  return letters.includes('\ufffd') ? undefined : letters
}

function readEscapes(escapes: string): string {
  try {
    return decodeURIComponent(escapes)
  } catch {
    return escapes
  }
}
