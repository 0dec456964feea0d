import { hexDigit } from '../../http/hex-digit.ts'

const slash = 0x2f
const percent = 0x25
const backslash = 0x5c

/**
 * Returns the path of a raw target in one spelling, segment by segment as a router cuts it: `%61` is `a`, `%21` is `!`, other
 * escapes are in upper case, a `%` that is none is `%25`, and `\` stays, since to URL parsers it is a slash and `%5C` is not.
 * Unlike normalizeTarget it follows no dots and takes everything: most routers match `/a/../b` as written, and serve it from
 * `/a/*`.
 */
export function spelledPath(target: string): string {
  return spelledFrom(target, target.charCodeAt(0) === slash ? 0 : originOf(target).end)
}

/** Returns the whole path of a target from which routers have cut the path that they are mounted on. */
export function pathBelow(base: string, target: string): string {
  return base === '' ? spelledPath(target) : spelledPath(base) + spelledPath(target)
}

/**
 * Returns the path behind a host that is none, such as `b%2Fc` in `http://b%2Fc/d`: Node's `url.parse`, and so Express, takes
 * `/%2Fc/d` for the path where others see `/d`, and in `javascript://b/c`, which has no host to it, `//b/c`. Undefined for all
 * other targets.
 */
export function pathBehindHost(target: string): string | undefined {
  if (target.charCodeAt(0) === slash) return undefined
  const { host, end } = originOf(target)
  if (/^javascript:/i.test(target)) return spelledFrom(`/${target.slice(target.indexOf('//') + 2)}`, 0)
  let at = host
  while (at < end && !notInHosts.test(target[at]!)) at++
  return at === end ? undefined : spelledFrom(`/${target.slice(at)}`, 0)
}

function spelledFrom(target: string, start: number): string {
  let end = start
  let plain = true
  for (; end < target.length; end++) {
    const code = target.charCodeAt(end)
    if (code === 0x3f || code === 0x23) break
    if (code === percent) plain = false
  }
  if (!plain) return spell(target, start, end)
  if (start === end) return '/'
  return start === 0 && end === target.length ? target : target.slice(start, end)
}

/** Returns the text after the question mark of a raw target, without the fragment. */
export function queryOf(target: string): string | undefined {
  const question = target.indexOf('?')
  if (question < 0) return undefined
  const hash = target.indexOf('#')
  if (hash < 0) return target.slice(question + 1)
  return hash < question ? undefined : target.slice(question + 1, hash)
}

const scheme = /^[a-z]+:\/\//i
/** Characters at which `url.parse` ends a host, besides those at which every parser does. */
const notInHosts = /[\s"%';<>^`{|}]/

/** Finds where the host of `http://host/path` begins, behind a user's name, and where it ends; 0 for all other forms. */
function originOf(target: string): { readonly host: number; readonly end: number } {
  const start = scheme.exec(target)?.[0].length
  if (start === undefined) return { host: 0, end: 0 }
  let end = start
  while (end < target.length && !endsHost(target.charCodeAt(end))) end++
  return { host: Math.max(start, target.lastIndexOf('@', end - 1) + 1), end }
}

function endsHost(code: number): boolean {
  return code === 0x2f || code === backslash || code === 0x3f || code === 0x23
}

function spell(target: string, start: number, end: number): string {
  let spelled = ''
  let copied = start
  for (let at = start; at < end; at++) {
    if (target.charCodeAt(at) !== percent) continue
    const high = hexDigit(target.charCodeAt(at + 1))
    const low = hexDigit(target.charCodeAt(at + 2))
    const isEscape = at + 2 < end && high >= 0 && low >= 0
    spelled += target.slice(copied, at) + (isEscape ? readEscape(high * 16 + low, target.slice(at, at + 3)) : '%25')
    if (isEscape) at += 2
    copied = at + 1
  }
  return spelled + target.slice(copied, end)
}

/** Reads escapes of printable letters, except those that would then mean something else: `%`, `/`, `\`, `?`, `#`, `;`. */
function readEscape(code: number, written: string): string {
  if (code <= 0x20 || code >= 0x7f || '%/\\?#;'.includes(String.fromCharCode(code))) return written.toUpperCase()
  return String.fromCharCode(code)
}
