import { idFor } from '../../serve/rate-limit/import-envoy.ts'
import type { Imported, ImportedRule } from './imported.ts'

/** A call of `rateLimit({ … })` in a program: its options as they are written. */
interface Limiter {
  readonly line: number
  /** The variable that has it; undefined if it is an argument. */
  readonly name: string | undefined
  readonly start: number
  readonly options: ReadonlyMap<string, string>
}

interface Mounted {
  readonly path?: readonly string[]
  readonly method?: readonly string[]
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const
const read = new Set([
  'windowMs',
  'limit',
  'max',
  'statusCode',
  'identifier',
  'skipSuccessfulRequests',
  'skipFailedRequests',
])
/** Options that change nothing of what is counted, or for which Diana has a better default. */
const harmless = new Set(['standardHeaders', 'legacyHeaders', 'validate', 'requestPropertyName', 'store', 'message'])

/** Makes rules of the calls of `rateLimit({ … })` of express-rate-limit that a program contains; nothing of it is run. */
export function importExpress(text: string, ids: Set<string> = new Set()): Imported {
  const code = withoutComments(text)
  const rules: ImportedRule[] = []
  const warnings: string[] = []
  for (const limiter of limitersIn(code)) {
    const { line, options } = limiter
    const warn = (warning: string): void => void warnings.push(`line ${line}: ${warning}`)
    const limit = numberIn(options.get('limit') ?? options.get('max') ?? '5')
    const windowMs = numberIn(options.get('windowMs') ?? '60000')
    if (limit === undefined || windowMs === undefined || windowMs < 1) {
      warn('limit and windowMs are no plain numbers: write this rule by hand')
      continue
    }
    for (const name of options.keys()) {
      if (!read.has(name) && !harmless.has(name)) warn(`${name} is left out${remedies[name] ?? ''}`)
    }
    const places = mountsOf(limiter, code)
    if (places.length === 0) warn('no route uses it in this file, so the rule counts all calls')
    const statusCode = numberIn(options.get('statusCode') ?? '429')
    const named = /^(['"`])([^'"`]+)\1$/.exec(options.get('identifier') ?? '')?.[2]
    for (const match of places.length === 0 ? [{}] : places) {
      rules.push({
        id: idFor(named ?? limiter.name ?? 'rate-limit', ids),
        ...(Object.keys(match).length > 0 && { match }),
        by: 'ip',
        limit: `${limit}/${durationOf(windowMs)}`,
        algorithm: 'fixed-window',
        align: 'first-call',
        ...(options.get('skipSuccessfulRequests') === 'true' && { countWhen: 'failed' }),
        ...(options.get('skipFailedRequests') === 'true' && { countWhen: '200-399' }),
        answer: { status: statusCode ?? 429 },
      })
    }
    if (places.length > 1) warn(`${places.length} routes use it, which are ${places.length} rules with a count each`)
  }
  return { rules, warnings }
}

const remedies: Readonly<Record<string, string>> = {
  keyGenerator: ': calls are counted by address; write `by`',
  skip: ': all calls are counted; write `match`',
}

function limitersIn(code: string): Limiter[] {
  const found: Limiter[] = []
  for (const { index, 0: call } of code.matchAll(/\b(?:rateLimit|RateLimit|expressRateLimit)\(\s*\{/g)) {
    const from = index + call.length
    const name = /(?:const|let|var)\s+(\w+)(?:\s*:[^=]*)?\s*=\s*(?:\w+\.)?$/.exec(
      code.slice(Math.max(0, index - 200), index),
    )?.[1]
    found.push({ line: code.slice(0, index).split('\n').length, name, start: index, options: optionsIn(code, from) })
  }
  return found
}

/** Returns the options of an object from behind its brace, each with its text. */
function optionsIn(code: string, from: number): ReadonlyMap<string, string> {
  const options = new Map<string, string>()
  let depth = 0
  let start = from
  for (const { index, 0: token } of code
    .slice(from)
    .matchAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|[()[\]{},]/g)) {
    const isEnd = depth === 0 && token === '}'
    if (isEnd || (depth === 0 && token === ',')) {
      const [, name, value] =
        /^\s*['"]?(\w+)['"]?\s*(?::([\s\S]*)|[\s\S]*)$/.exec(code.slice(start, from + index)) ?? []
      if (name !== undefined) options.set(name, value?.trim() ?? name)
      start = from + index + 1
    }
    if (isEnd) break
    if ('([{'.includes(token)) depth++
    else if (')]}'.includes(token)) depth--
  }
  return options
}

/** Returns the routes that use a limiter, by its name or around its place. */
function mountsOf({ name, start }: Limiter, code: string): Mounted[] {
  const mounts: Mounted[] = []
  const routes = /\.(use|all|get|post|put|patch|delete)\(\s*(?:(['"`])([^'"`]*)\2\s*,\s*)?/g
  for (const { index, 0: opening, 1: verb, 3: path } of code.matchAll(routes)) {
    const from = index + opening.length
    const isInline = name === undefined && from <= start && /^[\w\s,.]*$/.test(code.slice(from, start))
    const isNamed =
      name !== undefined && new RegExp(String.raw`^[\w\s,.]*?\b${name}\b`).test(code.slice(from, from + 1000))
    if (!isInline && !isNamed) continue
    const paths = path === undefined || path === '/' ? undefined : pathsOf(verb!, path)
    mounts.push({
      ...(paths && { path: paths }),
      ...(verb !== 'use' && verb !== 'all' && { method: [verb!.toUpperCase()] }),
    })
  }
  return mounts
}

function pathsOf(verb: string, path: string): string[] {
  const plain = path.replace(/\/+$/, '')
  return verb === 'use' ? [plain, `${plain}/**`] : [path]
}

/** Returns the value of a product of numbers, as in 15 * 60 * 1000. */
function numberIn(text: string): number | undefined {
  if (!/^[\d_.]+(?:\s*\*\s*[\d_.]+)*$/.test(text)) return undefined
  const value = text.split('*').reduce((product, factor) => product * Number(factor.replaceAll('_', '')), 1)
  return Number.isSafeInteger(value) ? value : undefined
}

function durationOf(ms: number): string {
  const [unit, length] = units.find(([, size]) => ms % size === 0)!
  return ms === length ? unit : `${ms / length}${unit}`
}

/** Returns the program with its comments as spaces; lines stay lines. */
function withoutComments(text: string): string {
  const parts = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g
  return text.replaceAll(parts, part => (part.startsWith('/') ? part.replaceAll(/[^\n]/g, ' ') : part))
}
