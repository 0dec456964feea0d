import { hexDigit } from './hex-digit.ts'

/** A request target in the one spelling that is both counted and forwarded. */
export interface Target {
  readonly path: string
  /** Without the question mark; undefined when there is none or nothing follows it. */
  readonly query: string | undefined
}

const SLASH = 0x2f
const BACKSLASH = 0x5c
const PERCENT = 0x25
const DOT = 0x2e
const SEMICOLON = 0x3b

/**
 * Settles how a raw target is spelled, so that no two spellings of a path are two resources: absolute-form and
 * fragments are cut, `%61` is `a`, other escapes are in upper case, `\`, `//`, `.` and `..` are resolved.
 * Undefined for what deserves a 400: broken escapes, control characters, bytes that no URI may have, and paths that
 * mean different resources to different servers.
 */
export function normalizeTarget(rawTarget: string): Target | undefined {
  if (rawTarget === '*') return { path: '*', query: undefined }
  const start = rawTarget.charCodeAt(0) === SLASH ? 0 : originLength(rawTarget)
  if (start < 0) return undefined
  let end = rawTarget.length
  let queryMark = -1
  let plain = true
  for (let at = start; at < end; at++) {
    const code = rawTarget.charCodeAt(at)
    if (code <= 0x20 || code >= 0x7f) return undefined
    if (code === 0x23) end = at
    else if (queryMark < 0) {
      if (code === 0x3f) queryMark = at
      else if (code === PERCENT || code === BACKSLASH || code === SEMICOLON) plain = false
      else if (code === SLASH && mayChange(rawTarget.charCodeAt(at + 1))) plain = false
    }
  }
  const pathEnd = queryMark < 0 ? end : queryMark
  const path = plain ? rawTarget.slice(start, pathEnd) || '/' : resolve(rawTarget, start, pathEnd)
  if (path === undefined) return undefined
  return { path, query: queryMark < 0 || queryMark + 1 === end ? undefined : rawTarget.slice(queryMark + 1, end) }
}

/**
 * Returns the path that a call is counted under. Many servers ignore `;x=1` behind a segment, a slash at the end and a second slash
 * in between, so none of them may buy a caller a fresh count.
 */
export function countedPath(path: string): string {
  let counted = ''
  let copied = 0
  for (let at = path.indexOf(';'); at >= 0; at = path.indexOf(';', copied)) {
    counted += path.slice(copied, at)
    const next = path.indexOf('/', at)
    copied = next < 0 ? path.length : next
  }
  counted = copied === 0 ? path : counted + path.slice(copied)
  if (counted.includes('//')) counted = counted.replaceAll(/\/{2,}/g, '/')
  let end = counted.length
  while (end > 1 && counted.charCodeAt(end - 1) === SLASH) end--
  return end === counted.length ? counted : counted.slice(0, end)
}

/** Returns how long `http://host` is in front of the path, or -1 if there is none. */
function originLength(target: string): number {
  const scheme = target.slice(0, 8).toLowerCase()
  const hostStart = scheme.startsWith('http://') ? 7 : scheme === 'https://' ? 8 : -1
  if (hostStart < 0) return -1
  let at = hostStart
  for (; at < target.length && !endsHost(target.charCodeAt(at)); at++) {
    if (!HOST_CHARACTER.test(target[at]!)) return -1
  }
  return at === hostStart ? -1 : at
}

/** A character of a host and its port. A user's name in front is refused, as are characters at which some parsers end the host. */
const HOST_CHARACTER = /[\w.:[\]-]/

function endsHost(code: number): boolean {
  return code === SLASH || code === BACKSLASH || code === 0x3f || code === 0x23
}

function mayChange(codeAfterSlash: number): boolean {
  return codeAfterSlash === SLASH || codeAfterSlash === DOT
}

function resolve(target: string, start: number, end: number): string | undefined {
  const segments: string[] = []
  let open = false
  for (let at = start; at < end; ) {
    let segmentEnd = at
    while (segmentEnd < end && !isSlash(target.charCodeAt(segmentEnd))) segmentEnd++
    const segment = decodeUnreserved(target, at, segmentEnd)
    if (segment === undefined || isAmbiguous(segment, () => isEndOf(target, segmentEnd, end))) return undefined
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
    open = segmentEnd < end || segment === '.' || segment === '..'
    at = segmentEnd + 1
  }
  if (segments.length === 0) return '/'
  return `/${segments.join('/')}${open ? '/' : ''}`
}

function decodeUnreserved(target: string, start: number, end: number): string | undefined {
  let decoded = ''
  let copied = start
  for (let at = start; at < end; at++) {
    if (target.charCodeAt(at) !== PERCENT) continue
    const high = hexDigit(target.charCodeAt(at + 1))
    const low = hexDigit(target.charCodeAt(at + 2))
    const code = high * 16 + low
    if (at + 2 >= end || high < 2 || low < 0 || code === 0x7f) return undefined
    decoded += target.slice(copied, at)
    decoded += isUnreserved(code) ? String.fromCharCode(code) : target.slice(at, at + 3).toUpperCase()
    at += 2
    copied = at + 1
  }
  return decoded + target.slice(copied, end)
}

const ENCODED_SLASH = /%2F|%5C/
const PARAMETERS = /;|%3B/

/**
 * True if servers disagree on where a segment leads. Some read `%2F` and `%5C` as slashes and some do not, so no dots may be beside
 * them; some drop what follows a semicolon, up to the next slash or to the end, so one may only be in the last segment. There it is
 * harmless, and servlets write it.
 */
function isAmbiguous(segment: string, isLast: () => boolean): boolean {
  if (!segment.includes('%') && !segment.includes(';')) return false
  const pieces = segment.split(ENCODED_SLASH)
  return pieces.some((piece, at) => {
    const isEnd = at === pieces.length - 1
    const [name] = piece.split(PARAMETERS, 1)
    const hasParameters = name !== piece
    if (name === '.' || name === '..') return hasParameters || pieces.length > 1
    return hasParameters && !(isEnd && isLast())
  })
}

/** True if nothing but slashes follows. */
function isEndOf(target: string, from: number, end: number): boolean {
  let at = from
  while (at < end && isSlash(target.charCodeAt(at))) at++
  return at === end
}

function isSlash(code: number): boolean {
  return code === SLASH || code === BACKSLASH
}

function isUnreserved(code: number): boolean {
  const lower = code | 0x20
  if (lower >= 0x61 && lower <= 0x7a) return true
  return (code >= 0x30 && code <= 0x39) || code === 0x2d || code === DOT || code === 0x5f || code === 0x7e
}
