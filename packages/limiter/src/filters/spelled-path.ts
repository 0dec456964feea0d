import { hexDigit } from '../hex-digit.ts'
import { normaliseTarget } from '../path.ts'

const percent = 0x25
const backslash = 0x5c

/**
 * The path of a raw target in one spelling, segment by segment as a router cuts it: `%61` is `a`, `%21` is `!`, other
 * escapes are in upper case, a `%` that is none is `%25`. Unlike normaliseTarget it follows no dots and takes everything:
 * most routers look at `/a/../b` as it stands, and serve it from `/a/*`.
 */
export function spelledPath(target: string): string {
  const start = target.charCodeAt(0) === 0x2f ? 0 : originLength(target)
  let end = start
  let plain = true
  for (; end < target.length; end++) {
    const code = target.charCodeAt(end)
    if (code === 0x3f || code === 0x23) break
    if (code === percent || code === backslash) plain = false
  }
  if (!plain) return spell(target, start, end)
  if (start === end) return '/'
  return start === 0 && end === target.length ? target : target.slice(start, end)
}

/** Where a spelled path leads once dots and encoded slashes are followed, as file servers do; undefined if nowhere else. */
export function resolvedPath(path: string): string | undefined {
  const hidden = path.includes('%2F') || path.includes('%5C')
  if (!hidden && !path.includes('/.')) return undefined
  const open = hidden ? path.replaceAll('%2F', '/').replaceAll('%5C', '/') : path
  const resolved = normaliseTarget(open)?.path
  return resolved === path ? undefined : resolved
}

/** What stands behind the question mark of a raw target, without the fragment. */
export function queryOf(target: string): string | undefined {
  const question = target.indexOf('?')
  if (question < 0) return undefined
  const hash = target.indexOf('#')
  if (hash < 0) return target.slice(question + 1)
  return hash < question ? undefined : target.slice(question + 1, hash)
}

/** How long `http://host` is in front of the path; 0 for all other forms. */
function originLength(target: string): number {
  const colon = target.indexOf('://')
  if (colon < 0 || colon > 5) return 0
  let at = colon + 3
  while (at < target.length && !endsHost(target.charCodeAt(at))) at++
  return at
}

function endsHost(code: number): boolean {
  return code === 0x2f || code === backslash || code === 0x3f || code === 0x23
}

function spell(target: string, start: number, end: number): string {
  let spelled = ''
  let copied = start
  for (let at = start; at < end; at++) {
    const code = target.charCodeAt(at)
    if (code === backslash) {
      spelled += `${target.slice(copied, at)}%5C`
      copied = at + 1
    } else if (code === percent) {
      const high = hexDigit(target.charCodeAt(at + 1))
      const low = hexDigit(target.charCodeAt(at + 2))
      const isEscape = at + 2 < end && high >= 0 && low >= 0
      spelled += target.slice(copied, at) + (isEscape ? readEscape(high * 16 + low, target.slice(at, at + 3)) : '%25')
      if (isEscape) at += 2
      copied = at + 1
    }
  }
  return spelled + target.slice(copied, end)
}

/** Printable letters are read, except those that would then mean something else: `%`, `/`, `\`, `?`, `#`, `;`. */
function readEscape(code: number, written: string): string {
  if (code <= 0x20 || code >= 0x7f || '%/\\?#;'.includes(String.fromCharCode(code))) return written.toUpperCase()
  return String.fromCharCode(code)
}
