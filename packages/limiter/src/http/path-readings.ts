import { countedPath } from './path.ts'

const SLASH = 0x2f
const DOT = 0x2e

const ENCODED_SLASH = /%2f/gi
const BACKSLASH = /\\/g
const ENCODED_BACKSLASH = /%5c/gi
const ENCODED_SEMICOLON = /%3b/gi
const PARAMETERS = /;[^/]*/g

/** The result of the last reading: the rules of one call all read the same path. */
const last = { path: '', hasReadings: false }
const lastResource = { path: '', counted: '' }

/** True if servers may read a path in more than one way; false for most, and quick. */
export function hasReadings(path: string): boolean {
  if (path !== last.path) {
    last.hasReadings = hasDelimiters(path)
    last.path = path
  }
  return last.hasReadings
}

function hasDelimiters(path: string): boolean {
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at)
    // most characters are letters, which are beyond all that matter but the backslash
    if (code > 0x3b) {
      if (code === 0x5c) return true
    } else if (code === 0x3b) return true
    else if (code === 0x25) {
      if (isEncodedDelimiter(path.charCodeAt(at + 1), path.charCodeAt(at + 2) | 0x20)) return true
    } else if (code === SLASH && path.charCodeAt(at + 1) === DOT && isDotSegment(path, at + 2)) return true
  }
  return false
}

/** The most work of reading a path, about a millisecond: only an attacker sends a path of more. */
const MOST_WORK = 16_384
/** More than a path can have of a byte each. */
const MOST_READINGS = 216
/** The number of readings that any path may have, of any length. */
const FEW_READINGS = 6
/** Other characters cost less than a delimiter does. */
const CHARACTERS_LIKE_ONE = 32

/** True if it would cost too much to read a path in every way: it is long, and has delimiters of several kinds. */
export function isTooAmbiguous(path: string): boolean {
  return path.length * MOST_READINGS > MOST_WORK && workFor(path) > MOST_WORK
}

/** Counts the delimiters of a path, by how many readings their kinds make at most; 0 if those are few. */
function workFor(path: string): number {
  const counts = {
    slash: 0,
    backslash: 0,
    slashEscape: 0,
    backslashEscape: 0,
    semicolon: 0,
    semicolonEscape: 0,
    dot: 0,
  }
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at)
    if (code === SLASH) counts.slash++
    else if (code === 0x5c) counts.backslash++
    else if (code === 0x3b) counts.semicolon++
    else if (code === DOT) counts.dot++
    else if (code === 0x25) {
      const first = path.charCodeAt(at + 1)
      if (!isEncodedDelimiter(first, path.charCodeAt(at + 2) | 0x20)) continue
      if (first === 0x32) counts.slashEscape++
      else if (first === 0x35) counts.backslashEscape++
      else counts.semicolonEscape++
    }
  }
  const { slash, backslash, slashEscape, backslashEscape, semicolon, semicolonEscape, dot } = counts
  const bySemicolon = semicolonEscape > 0 ? 6 : semicolon > 0 ? 3 : 1
  const bySlash = (backslash > 0 ? 3 : 1) * (slashEscape > 0 ? 2 : 1) * (backslash + backslashEscape > 0 ? 2 : 1)
  const readings = bySemicolon * bySlash * (dot > 0 ? 3 : 1)
  if (readings <= FEW_READINGS) return 0
  const delimiters = slash + backslash + slashEscape + backslashEscape + semicolon + semicolonEscape
  return (delimiters + path.length / CHARACTERS_LIKE_ONE) * readings
}

/**
 * Returns every path that a common server may take a path for. Servers differ in whether `%2F` and `%5C` are slashes, whether what
 * follows `;` or `%3B` is dropped, up to the next slash or to the end, before or after that, whether dots are followed, and whether
 * `..` leads out of an empty segment.
 */
export function readingsOf(path: string): Set<string> {
  const readings = formsOf(path)
  for (const form of [...readings]) follow(form, readings)
  return readings
}

/** Returns a path as servers write it before they follow dots. */
function formsOf(path: string): Set<string> {
  const forms = new Set<string>()
  for (const text of new Set([path, path.replace(ENCODED_SEMICOLON, ';')])) {
    // to some routers a semicolon begins the query
    const semicolon = text.indexOf(';')
    if (semicolon > 0) forms.add(text.slice(0, semicolon))
    for (const opened of slashed(text)) forms.add(opened).add(withoutParameters(opened))
    for (const opened of slashed(withoutParameters(text))) forms.add(opened)
  }
  return forms
}

/** Returns one path for all spellings of a resource: every encoded slash is a slash, and parameters are dropped. */
export function resourcePath(path: string): string {
  if (path !== lastResource.path) {
    lastResource.counted = hasReadings(path)
      ? collapse(followMerged(path.replace(ENCODED_SLASH, '/')))
      : countedPath(path)
    lastResource.path = path
  }
  return lastResource.counted
}

/** True if servers take a path to different resources, by that measure. */
export function isAmbiguousPath(path: string): boolean {
  if (!hasReadings(path)) return false
  if (isTooAmbiguous(path)) return true
  const places = new Set<string>()
  for (const form of formsOf(path)) follow(form, places)
  const resource = resourcePath(path)
  return [...places].some(place => collapse(place) !== resource)
}

function collapse(path: string): string {
  const text = path.replace(ENCODED_SEMICOLON, ';').replace(ENCODED_SLASH, '/')
  return countedPath(text.replace(ENCODED_BACKSLASH, '/').replace(BACKSLASH, '/'))
}

/**
 * Returns a path with each kind of other slash as a slash or not. URL parsers take `\` for a slash and leave `%5C` as it is;
 * routers that take it for none have it as `%5C`, or as it is.
 */
function slashed(path: string): Set<string> {
  const forms = new Set([path, path.replace(BACKSLASH, '/'), path.replace(BACKSLASH, '%5C')])
  for (const other of [ENCODED_SLASH, ENCODED_BACKSLASH]) {
    for (const form of [...forms]) forms.add(form.replace(other, '/'))
  }
  return forms
}

function withoutParameters(path: string): string {
  return path.replace(PARAMETERS, '')
}

function follow(path: string, places: Set<string>): void {
  const hasEmpty = path.includes('//')
  if (!hasEmpty && !path.includes('/.')) {
    places.add(path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)
    return
  }
  places.add(followMerged(path))
  if (hasEmpty) places.add(followEmpty(path))
}

/** Follows dots as file servers do, which take `//` for `/` first. */
function followMerged(path: string): string {
  const segments: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/** Follows dots as URL parsers do, to which an empty segment is one. */
function followEmpty(path: string): string {
  const segments: string[] = []
  for (const segment of path.split('/').slice(1)) {
    if (segment === '..') segments.pop()
    else if (segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/** True if the escape is `%2F`, `%5C` or `%3B`. */
function isEncodedDelimiter(first: number, secondInLowerCase: number): boolean {
  if (first === 0x32) return secondInLowerCase === 0x66
  return (first === 0x35 && secondInLowerCase === 0x63) || (first === 0x33 && secondInLowerCase === 0x62)
}

/** True if the segment that began with a dot before `at` is `.` or `..`. */
function isDotSegment(path: string, at: number): boolean {
  const end = path.charCodeAt(at) === DOT ? at + 1 : at
  return end >= path.length || path.charCodeAt(end) === SLASH
}

/** Escapes of letters; not of what would mean something else in a path or in the pattern of a rule: `% / \\ ? # ; *`. */
const ESCAPES = /(?:%[89a-f][\da-f])+|%(?!2[35af]|3[bf]|5c|7f)[2-7][\da-f]/gi
const IN_LOWER_CASE = /%(?:[\dA-F][a-f]|[a-f][\da-fA-F])/g
const BYTES = /[\x80-\xff]/
const BEYOND_BYTES = /[\u0100-\uffff]/

/**
 * Returns a path with escapes read as the letters that they are: `/caf%C3%A9` is `/café`, and `/big%20sale` is `/big sale`. Some
 * routers compare paths after they have decoded them and some before, so rules and calls are compared in this one form.
 */
export function lettersOf(path: string): string {
  if (!path.includes('%')) return path
  return path.replace(ESCAPES, readEscapes).replace(IN_LOWER_CASE, escaped => escaped.toUpperCase())
}

/** Returns the letters of a path that came as bytes of UTF-8, which Node gives as one character each; undefined if it did not. */
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
