import { joinNames, show } from '../show.ts'
import { suggest } from '../suggest.ts'

/** Returns what is wrong with a path of `match`: literal segments, `*`, `**` and `:name`. */
export function pathFault(path: string): string | undefined {
  if (path === '**') return undefined
  if (isRegularExpression(path)) return regularExpressionFault(path)
  if (!path.startsWith('/')) return `${show(path)} must begin with /: write ${show(`/${path}`)}`
  const braces = path.replace(/\{(\w+)\}/g, ':$1')
  if (braces !== path) return `${show(path)} has braces: write ${show(braces)}`
  const odd = /[\s\p{Cc}?#{}[\]\\<>"^|`]/u.exec(path)?.[0]
  if (odd === '?') return `${show(path)} has a query, which is no part of the path: write ${show(path.split('?')[0])}`
  if (odd) return `${show(path)} has ${show(odd)}, which no path holds: take it out or write it as %XX`
  for (const segment of path.slice(1, path.endsWith('/') ? -1 : undefined).split('/')) {
    const fault = path === '/' ? undefined : segmentFault(segment)
    if (fault) return `${show(path)} ${fault}`
  }
  return undefined
}

function regularExpressionFault(path: string): string {
  const pattern = patternOf(path)
  const isPattern = !isRegularExpression(pattern) && pathFault(pattern) === undefined
  const example = isPattern ? show(pattern) : '/orders/** for all below, /orders/* for one segment'
  return `${show(path)} is a regular expression, and a path is a pattern: write ${example}`
}

function segmentFault(segment: string): string | undefined {
  if (segment === '') return 'has an empty segment: write one / only'
  if (segment === '.' || segment === '..')
    return `has ${show(segment)}, which no path keeps: write the path it leads to`
  if (segment !== '**' && segment.includes('**')) return `has ${show(segment)}: ** must stand alone between two /`
  if (segment.startsWith(':') && !/^:[A-Za-z_]\w*$/.test(segment)) {
    return `has ${show(segment)}: a name is a whole segment of letters, digits and _, such as :id`
  }
  return undefined
}

/** Returns what is wrong with a host of `match`: a name, or `*.` and a name. */
export function hostFault(host: string): string | undefined {
  if (/^(?:\*\.)?[\w-]+(?:\.[\w-]+)*$/.test(host) || /^\[[\da-f:.]+\]$/i.test(host)) return undefined
  if (/^[^/]*:\/\/|\//.test(host))
    return `${show(host)} must be the host alone, without scheme and path: api.example.com`
  if (/:\d*$/.test(host)) return `${show(host)} must be without a port: write ${show(host.replace(/:\d*$/, ''))}`
  if (host.includes('*')) return `${show(host)} may have * only in front: *.example.com`
  return `${show(host)} is not a host: write letters, digits, - and dots, such as api.example.com or *.example.com`
}

/** The methods of the HTTP registry that a service may meet. */
export const methods: readonly string[] = (
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT QUERY ACL BIND CHECKOUT COPY LINK LOCK MERGE MKACTIVITY ' +
  'MKCALENDAR MKCOL MOVE PROPFIND PROPPATCH PURGE REBIND REPORT SEARCH SUBSCRIBE UNBIND UNLINK UNLOCK UNSUBSCRIBE'
).split(' ')

/** Returns what is wrong with a method of `match`. */
export function methodFault(method: string): string | undefined {
  const name = method.toUpperCase()
  if (methods.includes(name)) return undefined
  const meant = suggest(name, methods)
  const remedy = meant ? `did you mean ${meant}?` : `write ${joinNames(methods.slice(0, 7))}`
  return `${show(method)} is not a method: ${remedy}`
}

/** Returns what is wrong with the name of a header. */
export function headerFault(name: string): string | undefined {
  if (/^[\w!#$%&'*+.^`|~-]{1,128}$/.test(name)) return undefined
  return 'is not the name of a header: write letters, digits and -, such as x-plan'
}

/** Signs that only a regular expression has: anchors, classes, groups of choices, and `.*` for a whole segment. */
const MARKS = /^\/?\^|^~|\\[dwsDWS./]|\[[^\]]*\]|\([^)]*[|?][^)]*\)|\([^)]*\)[+*?]|(?:^|\/)\.[*+](?:\/|\$?$)/

/** True if a path was written as a regular expression. */
function isRegularExpression(path: string): boolean {
  return MARKS.test(path)
}

/** Returns the pattern that a regular expression for a path was probably meant to be. */
function patternOf(expression: string): string {
  const plain = expression
    .replace(/^~\*?\s*/, '')
    .replace(/^\^|\$$/g, '')
    .replace(/^\/(?=\^)/, '')
    .replace(/\(\?:?[^)]*\)|\([^)]*\)/g, '*')
    .replace(/\[[^\]]*\][+*]?|\\[dwDW][+*]?/g, '*')
    .replace(/\\/g, '')
    .replace(/(^|\/)\.[*+](?=\/|$)/g, '$1**')
    .replace(/\.[*+]/g, '*')
  return plain.startsWith('/') ? plain : `/${plain}`
}
